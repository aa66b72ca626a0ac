"""Models of others: torch's, timm's, Hugging Face's, and any that calls torch's attention kernel."""
