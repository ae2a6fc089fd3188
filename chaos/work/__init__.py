"""An app whose handlers write down what they do, and some of which misbehave."""
