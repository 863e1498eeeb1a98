"""The report as one HTML page that needs nothing else; `render` brings Jinja2, which only pages need."""
