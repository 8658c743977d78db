-- stage 0, round 0: MergeInto
--   reads d_1: TopicInput orders
--   reads s_2: StateLookup CTAS_X_5/Aggregate/Aggregate/StreamTime TickPartitions()
SELECT clk AS k0, max(st) AS p0, max(ts) AS ts, count_if(bad = 0 AND ts div 60000 * 60000 + 60000 <= st - 10000) AS late, bad, count(*) AS skipped
FROM (
  SELECT k0, c0, c1, present, ts, part, off, bad, clk, greatest(so_far, b_time) AS st
  FROM (
    SELECT *, max(IF(bad = 0, ts, NULL)) OVER (PARTITION BY clk ORDER BY ts, part, off ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far
    FROM (
      SELECT *, CAST(IF(part IS NULL, NULL, 0) AS INT) AS clk
      FROM (
        SELECT k0, c0, c1, present, ts, part, off, IF(bad = 0 AND NOT (present AND k0 IS NOT NULL), 3, bad) AS bad
        FROM (
          SELECT IF(bad > 0, NULL, c0) AS k0, c0, c1, present, ts, part, off, bad
          FROM (
            SELECT k0 AS k0, c1 AS c0, IF(present, ts, NULL) AS c1, present, ts, part, off, bad, hdr
            FROM (
              SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
              FROM d_1
            )
          )
        )
      )
    )
  ) s
  LEFT JOIN (
    SELECT k0 AS b_clock, c0 AS b_time
    FROM s_2
  ) b ON clk = b_clock
)
GROUP BY clk, bad;

-- stage 1, round 0: MergeWindows
--   reads d_1: TopicInput orders
--   reads s_2: StateLookup CTAS_X_5/Aggregate/Aggregate/StreamTime TickPartitions()
SELECT k0, clk AS k1, k1 AS k2, k2 AS k3, COUNT(c1) AS p0, max(ts) AS p1, max(off) AS p2, k2 AS ts, array(k1) AS o_start, array(k2) AS o_end, 0L AS late, bad
FROM (
  SELECT k0, ws AS k1, IF(ws > 9223372036854715807L, 9223372036854775807L, ws + 60000L) AS k2, c0, c1, present, ts, part, off, bad, clk
  FROM (
    SELECT *, explode(IF(bad > 0, array(0L), sequence(greatest(ts - 60000 + 60000, 0) div 60000 * 60000, ts, 60000L))) AS ws
    FROM (
      SELECT k0, c0, c1, present, ts, part, off, bad, clk, greatest(so_far, b_time) AS st
      FROM (
        SELECT *, max(IF(bad = 0, ts, NULL)) OVER (PARTITION BY clk ORDER BY ts, part, off ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far
        FROM (
          SELECT *, CAST(IF(part IS NULL, NULL, 0) AS INT) AS clk
          FROM (
            SELECT k0, c0, c1, present, ts, part, off, IF(bad = 0 AND NOT (present AND k0 IS NOT NULL), 3, bad) AS bad
            FROM (
              SELECT IF(bad > 0, NULL, c0) AS k0, c0, c1, present, ts, part, off, bad
              FROM (
                SELECT k0 AS k0, c1 AS c0, IF(present, ts, NULL) AS c1, present, ts, part, off, bad, hdr
                FROM (
                  SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
                  FROM d_1
                )
              )
            )
          )
        )
      ) s
      LEFT JOIN (
        SELECT k0 AS b_clock, c0 AS b_time
        FROM s_2
      ) b ON clk = b_clock
    )
  )
  WHERE bad > 0 OR ws + 60000 > st - 10000
)
GROUP BY k0, clk, k1, k2, bad;

-- stage 2, round 1: Upsert
--   reads h_3: SavedRows 1
SELECT k0, k1, k2, a0 AS c0, coalesce(a_ts, b_ts) AS ts, a_present AS present
FROM (
  SELECT k0, k1, k2, b_present, b0 AS b0, b_ts, a_present, a0 AS a0, a_ts
  FROM (
    SELECT k0, k1, k2, b_present, br0 AS b0, b_ts, a_present, ar0 AS a0, a_ts
    FROM (
      SELECT k0, k1, k2, b_present, b0 AS br0, b_ts, a_present, a0 AS ar0, a_ts
      FROM h_3
    )
  )
);
