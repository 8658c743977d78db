-- stage 0, round 0: MergeInto
--   reads d_1: TopicInput orders
--   reads s_2: StateLookup CTAS_X_5/Aggregate/Aggregate/StreamTime TickPartitions()
SELECT clk AS k0, max(st) AS p0, max(ts) AS ts, count_if(bad = 0 AND false) AS late, bad, count(*) AS skipped
FROM (
  SELECT k0, c0, c1, present, ts, part, off, bad, at, clk, greatest(so_far, b_time) AS st
  FROM (
    SELECT *, max(IF(bad = 0, ts, NULL)) OVER (PARTITION BY clk ORDER BY ts, part, off ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far
    FROM (
      SELECT *, CAST(IF(part IS NULL, NULL, 0) AS INT) AS clk
      FROM (
        SELECT *, max(IF(bad = 0, ts, NULL)) OVER (PARTITION BY part ORDER BY off ROWS UNBOUNDED PRECEDING) AS at
        FROM (
          SELECT k0, c0, c1, present, ts, part, off, IF(bad = 0 AND NOT (present AND k0 IS NOT NULL), 3, bad) AS bad
          FROM (
            SELECT IF(bad > 0, NULL, c0) AS k0, c0, c1, present, ts, part, off, bad
            FROM (
              SELECT k0 AS k0, c1 AS c0, c0 AS c1, present, ts, part, off, bad, hdr
              FROM (
                SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
                FROM d_1
              )
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

-- stage 1, round 0: SaveRows
--   reads d_1: TopicInput orders
--   reads s_2: StateLookup CTAS_X_5/Aggregate/Aggregate/StreamTime TickPartitions()
SELECT k0, clk AS k1, c0, c1, ts, part, off, at, row_number() OVER (PARTITION BY k0, clk ORDER BY ts, part, off) AS ord, st - 86400001 AS shut, bad
FROM (
  SELECT k0, c0, c1, present, ts, part, off, bad, at, clk, greatest(so_far, b_time) AS st
  FROM (
    SELECT *, max(IF(bad = 0, ts, NULL)) OVER (PARTITION BY clk ORDER BY ts, part, off ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS so_far
    FROM (
      SELECT *, CAST(IF(part IS NULL, NULL, 0) AS INT) AS clk
      FROM (
        SELECT *, max(IF(bad = 0, ts, NULL)) OVER (PARTITION BY part ORDER BY off ROWS UNBOUNDED PRECEDING) AS at
        FROM (
          SELECT k0, c0, c1, present, ts, part, off, IF(bad = 0 AND NOT (present AND k0 IS NOT NULL), 3, bad) AS bad
          FROM (
            SELECT IF(bad > 0, NULL, c0) AS k0, c0, c1, present, ts, part, off, bad
            FROM (
              SELECT k0 AS k0, c1 AS c0, c0 AS c1, present, ts, part, off, bad, hdr
              FROM (
                SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
                FROM d_1
              )
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
);

-- stage 2, round 1: MergeWindows
--   reads h_3: SavedRows 1
--   reads g_4: StateLookup CTAS_X_5/Aggregate/Aggregate SavedGroups(stage=1, near=None)
SELECT k0, k1, x.s AS k2, x.e AS k3, max_by(c1, struct(struct(at, part), off)) FILTER (WHERE c1 IS NOT NULL) AS p0, max(ts) AS p1, max(off) AS p2, coalesce(x.e, max(shut) + 86400001) AS ts, x.os AS o_start, x.oe AS o_end, count_if(x IS NULL) AS late, 0 AS bad
FROM (
  SELECT k0, k1, r.ts AS ts, r.shut AS shut, r.part AS part, r.off AS off, r.at AS at, r.c0 AS c0, r.c1 AS c1, true AS present, 0 AS bad, IF(substring(t, i + 1, 1) = '1', element_at(array_sort(filter(w, x -> x.s <= r.ts AND r.ts <= x.e AND x.i <= i AND i <= x.j), (a, b) -> a.j - b.j), 1), NULL) AS x
  FROM (
    SELECT k0, k1, f.w AS w, f.t AS t, posexplode(rows) AS (i, r)
    FROM (
      SELECT k0, k1, rows, aggregate(rows, named_struct('w', known, 't', ''), (a, r) -> transform(array(filter(a.w, x -> x.e >= r.shut + 1 AND x.e >= r.ts - 30000 AND x.s <= r.ts + 30000)), n -> IF(r.ts > r.shut OR size(n) > 0, named_struct('w', concat(filter(a.w, x -> NOT (x.e >= r.shut + 1 AND x.e >= r.ts - 30000 AND x.s <= r.ts + 30000)), array(named_struct('s', least(r.ts, array_min(transform(n, x -> x.s))), 'e', greatest(r.ts, array_max(transform(n, x -> x.e))), 'i', coalesce(array_min(transform(n, x -> x.i)), length(a.t)), 'j', length(a.t), 'os', flatten(transform(n, x -> x.os)), 'oe', flatten(transform(n, x -> x.oe))))), 't', concat(a.t, '1')), named_struct('w', a.w, 't', concat(a.t, '0'))))[0]) AS f
      FROM (
        SELECT k0, k1, rows, coalesce(known, CAST(array() AS ARRAY<STRUCT<s: BIGINT, e: BIGINT, i: INT, j: INT, os: ARRAY<BIGINT>, oe: ARRAY<BIGINT>>>)) AS known
        FROM (
          SELECT k0, k1, array_sort(collect_list(struct(ord, ts, shut, part, off, at, c0, c1)), (l, r) -> CAST(l.ord - r.ord AS INT)) AS rows
          FROM h_3
          GROUP BY k0, k1
        )
        LEFT JOIN (
          SELECT k0 AS g0, k1 AS g1, collect_list(named_struct('s', k2, 'e', k3, 'i', CAST(NULL AS INT), 'j', CAST(NULL AS INT), 'os', array(k2), 'oe', array(k3))) AS known
          FROM g_4
          GROUP BY k0, k1
        ) ON k0 = g0 AND k1 = g1
      )
    )
  )
)
GROUP BY k0, k1, x;

-- stage 3, round 2: Upsert
--   reads h_5: SavedRows 2
SELECT k0, k1, k2, a0 AS c0, coalesce(a_ts, b_ts) AS ts, a_present AS present
FROM (
  SELECT k0, k1, k2, b_present, b0 AS b0, b_ts, a_present, a0 AS a0, a_ts
  FROM (
    SELECT k0, k1, k2, b_present, br0 AS b0, b_ts, a_present, ar0 AS a0, a_ts
    FROM (
      SELECT k0, k1, k2, b_present, b0 AS br0, b_ts, a_present, a0 AS ar0, a_ts
      FROM h_5
    )
  )
);
