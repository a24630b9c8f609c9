"""What tests share: past runs, waiting, compiled jobs, pages in a browser."""
