# sync_users.py
import os
import json
import psycopg2
from datetime import datetime

def main():
    # 所有配置都来自环境变量——但Agent-Reach会确保它们安全注入
    db_host = os.getenv("DB_HOST")
    db_port = int(os.getenv("DB_PORT", "5432"))
    db_name = os.getenv("DB_NAME")
    db_user = os.getenv("DB_USER")
    db_pass = os.getenv("DB_PASS")

    # 连接数据库（Agent-Reach的沙箱已允许此host:port）
    conn = psycopg2.connect(
        host=db_host,
        port=db_port,
        dbname=db_name,
        user=db_user,
        password=db_pass
    )

    # 同步逻辑：从源表读，写入目标表
    with conn.cursor() as cur:
        cur.execute("SELECT id, name, email, last_login FROM users WHERE last_login > %s",
                    (datetime.now().timestamp() - 86400,))
        rows = cur.fetchall()

    # 写入日志（Agent-Reach已授权/tmp/log/路径）
    log_path = "/tmp/log/sync.log"
    with open(log_path, "a") as f:
        f.write(f"[{datetime.now()}] Synced {len(rows)} users\n")

    print(f"Synced {len(rows)} users")

if __name__ == "__main__":
    main()
