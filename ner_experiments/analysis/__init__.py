"""What finished runs do beyond one score: by type and length of mention, by part of a model, by case."""
