"""Outcomes handed on as scores to where models are watched: MLflow and Langfuse."""
