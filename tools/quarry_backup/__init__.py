"""quarry-backup: mariadb-backup and Quarry's segments as one backup. Python's standard library only.

  cli.py      options and commands        session.py  the server: its lock, its snapshot, mariadb-backup
  backup.py   making a backup             restore.py  prepare, restore, verify
  files.py    copies, links, checksums    catalog.py  what a backup directory says of itself
  trusted.py  opening what the server names           credentials.py  the server's password      words.py  messages

A backup directory:
  backup.json         what is in it, with sizes and checksums; written last: without it the backup is not complete
  prepared.json       made by prepare
  INCOMPLETE          there while it is being made
  mariadb-backup.log  what mariadb-backup said
  server/             mariadb-backup's own target directory
  quarry/home/...     the catalogue, stores/ and trash/, as in the home, which is HOME_NAME
  quarry/paths/<n>/quarry/...   as in each data path
"""

HOME_NAME = "#quarry.d"  # in a data directory; the dot keeps SQL out of it
