"""Sums up orders in an embedded SQLite database, then reaches for two things that its contract does not grant."""

import csv
import os
import socket
import sqlite3
from pathlib import Path

HERE = Path(__file__).parent
DATABASE = HERE / "data" / "orders.sqlite3"
PASSWORDS = Path("/etc/shadow")
COLLECTOR = ("collector.example.net", 443)


def load_orders(database: sqlite3.Connection) -> int:
    """Fill the table from orders.csv, which is part of the project and so readable."""
    with (HERE / "orders.csv").open(newline="") as file:
        rows = [(row["day"], row["customer"], int(row["cents"])) for row in csv.DictReader(file)]
    with database:
        database.execute("DROP TABLE IF EXISTS orders")
        database.execute("CREATE TABLE orders (day TEXT, customer TEXT, cents INTEGER)")
        database.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
    return len(rows)


def report(database: sqlite3.Connection) -> None:
    """Print one line per customer."""
    print(os.environ["REPORT_TITLE"])
    query = "SELECT customer, count(*), sum(cents) FROM orders GROUP BY customer ORDER BY 3 DESC"
    for customer, count, cents in database.execute(query):
        print(f"  {customer:<10}{count:>3} orders{cents / 100:>9.2f}")


def read_passwords() -> None:
    """Try to read the host's password file: no grant, no file, whoever started reach."""
    try:
        print(PASSWORDS.read_text())
    except OSError as error:
        print(f"{PASSWORDS}: {error}")


def call_home() -> None:
    """Try to send the sums to a host that no rule names."""
    try:
        socket.create_connection(COLLECTOR, timeout=10).close()
    except OSError as error:
        print(f"{COLLECTOR[0]}: {error}")
    else:
        print(f"{COLLECTOR[0]}: connected")


def main() -> None:
    """Do the work, then step over the line twice."""
    database = sqlite3.connect(DATABASE)
    print(f"{load_orders(database)} orders read into {DATABASE.relative_to(HERE)}")
    report(database)
    database.close()
    read_passwords()
    call_home()


if __name__ == "__main__":
    main()
