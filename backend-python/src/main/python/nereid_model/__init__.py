"""Runs a model without a server: ``python3 -m nereid_model test MODEL_DIRECTORY request.json``."""
