from app.tools.load.cli import command

command(prog_name="query-intent load")
