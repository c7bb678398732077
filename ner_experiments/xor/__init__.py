"""The XOR limit of BiLSTM taggers (Li, Fu & Ma 2020): proved, measured, and trained against."""
