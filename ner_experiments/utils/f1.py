"""F1 from counts, apart from `metrics.py`: pages of tables need it without torch and torchmetrics."""


def f1_score(correct: int, predicted: int, gold: int) -> dict[str, float]:
    """Precision, recall and F1. Undefined ones are 0, as in conlleval."""
    precision = correct / predicted if predicted else 0.0
    recall = correct / gold if gold else 0.0
    f1 = 2 * correct / (predicted + gold) if correct else 0.0
    return {"precision": precision, "recall": recall, "f1": f1}
