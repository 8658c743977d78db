-- stage 0, round 0: MergeInto
--   reads d_1: TopicInput orders
--   reads s_2: StateLookup CTAS_X_5/Aggregate/Aggregate/StreamTime TickPartitions()
SELECT clk AS k0, max(st) AS p0, max(ts) AS ts, count_if(bad = 0 AND ts div 60000 * 60000 + 60000 <= st - 10000) AS late, bad, count(*) AS skipped
FROM (
  SELECT k0, c0, c1, present, ts, part, off, bad, clk, greatest(so_far, b_time) AS st
  FROM (
    SELECT *, max(IF(bad = 0, ts, NULL)) OVER (PARTITION BY clk ORDER BY off ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far
    FROM (
      SELECT *, part AS clk
      FROM (
        SELECT k0, c0, c1, present, ts, part, off, IF(bad = 0 AND NOT (present AND k0 IS NOT NULL), 3, bad) AS bad, hdr
        FROM (
          SELECT k0 AS k0, k0 AS c0, c2 AS c1, present, ts, part, off, bad, hdr
          FROM (
            SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
            FROM d_1
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

-- stage 1, round 0: MergeInto
--   reads d_1: TopicInput orders
--   reads s_2: StateLookup CTAS_X_5/Aggregate/Aggregate/StreamTime TickPartitions()
SELECT k0, k1, k2, bad, CAST(COALESCE(SUM(c1), 0) AS INT) AS p0, max(clk) AS p1, max(ts) AS ts
FROM (
  SELECT k0, ws AS k1, IF(ws > 9223372036854715807L, 9223372036854775807L, ws + 60000L) AS k2, c0, c1, present, ts, part, off, bad, clk
  FROM (
    SELECT *, explode(IF(bad > 0, array(0L), sequence(greatest(ts - 60000 + 60000, 0) div 60000 * 60000, ts, 60000L))) AS ws
    FROM (
      SELECT k0, c0, c1, present, ts, part, off, bad, clk, greatest(so_far, b_time) AS st
      FROM (
        SELECT *, max(IF(bad = 0, ts, NULL)) OVER (PARTITION BY clk ORDER BY off ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far
        FROM (
          SELECT *, part AS clk
          FROM (
            SELECT k0, c0, c1, present, ts, part, off, IF(bad = 0 AND NOT (present AND k0 IS NOT NULL), 3, bad) AS bad, hdr
            FROM (
              SELECT k0 AS k0, k0 AS c0, c2 AS c1, present, ts, part, off, bad, hdr
              FROM (
                SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
                FROM d_1
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
GROUP BY k0, k1, k2, bad;
