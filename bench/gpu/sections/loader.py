# SPDX-License-Identifier: Apache-2.0
"""Keeps the card busy until it is killed: fills of 256 MiB, some queued at all times. Says READY when it has begun."""

import stage

BYTES, QUEUED = 256 << 20 if not stage.quick() else 1 << 16, 20

driver = stage.cuda.Driver()
place = driver.allocate(BYTES)
print("READY", flush=True)
while True:
    for number in range(QUEUED):
        driver.fill(place, BYTES, number)
    driver.synchronize()
