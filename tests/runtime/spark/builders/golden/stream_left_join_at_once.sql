-- stage 0, round 0: MergeInto
--   reads d_1: TopicInput orders
--   reads d_2: TopicInput payments
--   reads s_3: StateLookup CSAS_X_5/Join/Times TickPartitions()
SELECT part AS k0, max(IF(bad = 0, ts, NULL)) AS p0, max(IF(bad = 0 AND side = 0, ts, NULL)) AS p1, max(IF(bad = 0 AND side = 1, ts, NULL)) AS p2, 1L AS p3, max(IF(bad = 0, ts, NULL)) AS ts, bad
FROM (
  SELECT k0, c0 AS l0, c1 AS l1, c2 AS l2, c3 AS l3, c4 AS l4, c5 AS l5, c6 AS l6, c7 AS l7, CAST(NULL AS INT) AS r0, CAST(NULL AS BIGINT) AS r1, CAST(NULL AS INT) AS r2, CAST(NULL AS BIGINT) AS r3, CAST(NULL AS STRING) AS r4, hdr, 0 AS side, 0 AS src, ts, part, off, IF(bad = 0 AND NOT (present AND k0 IS NOT NULL), 5, bad) AS bad
  FROM (
    SELECT k0 AS k0, c0 AS c0, c1 AS c1, c2 AS c2, c3 AS c3, IF(present, ts, NULL) AS c4, IF(present, part, NULL) AS c5, IF(present, off, NULL) AS c6, k0 AS c7, present, ts, part, off, bad, hdr
    FROM (
      SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
      FROM d_1
    )
  )
  UNION ALL
  SELECT k0, CAST(NULL AS STRING) AS l0, CAST(NULL AS STRING) AS l1, CAST(NULL AS INT) AS l2, CAST(NULL AS ARRAY<STRING>) AS l3, CAST(NULL AS BIGINT) AS l4, CAST(NULL AS INT) AS l5, CAST(NULL AS BIGINT) AS l6, CAST(NULL AS STRING) AS l7, c0 AS r0, c1 AS r1, c2 AS r2, c3 AS r3, c4 AS r4, hdr, 1 AS side, 1 AS src, ts, part, off, IF(bad = 0 AND NOT (present AND k0 IS NOT NULL), 5, bad) AS bad
  FROM (
    SELECT k0 AS k0, c0 AS c0, IF(present, ts, NULL) AS c1, IF(present, part, NULL) AS c2, IF(present, off, NULL) AS c3, k0 AS c4, present, ts, part, off, bad, hdr
    FROM (
      SELECT k0, c0, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
      FROM d_2
    )
  )
)
GROUP BY part, bad;

-- stage 1, round 0: SaveRows
--   reads d_1: TopicInput orders
--   reads d_2: TopicInput payments
--   reads s_3: StateLookup CSAS_X_5/Join/Times TickPartitions()
SELECT k0, l0, l1, l2, l3, l4, l5, l6, l7, r0, r1, r2, r3, r4, hdr, side, ts, part, n, src, at, tick, st, IF(side = 0, lt, rt) AS own, IF(side = 0, rt, lt) AS other, max(lt) OVER (PARTITION BY bad, part) AS ends_l, max(rt) OVER (PARTITION BY bad, part) AS ends_r, IF(bad = 0 AND ts <= IF(side = 0, lt, rt) - 86400000, 1L, 0L) AS late, bad
FROM (
  SELECT a.*, coalesce(b.ticks, 0) + 1 AS tick, greatest(max(ts) OVER (PARTITION BY bad, part ORDER BY at, src, n, side ROWS UNBOUNDED PRECEDING), b.st) AS st, greatest(max(IF(side = 0, ts, NULL)) OVER (PARTITION BY bad, part ORDER BY at, src, n, side ROWS UNBOUNDED PRECEDING), b.lt) AS lt, greatest(max(IF(side = 1, ts, NULL)) OVER (PARTITION BY bad, part ORDER BY at, src, n, side ROWS UNBOUNDED PRECEDING), b.rt) AS rt
  FROM (
    SELECT *, CAST(row_number() OVER (PARTITION BY bad, src, part, side ORDER BY off) AS BIGINT) AS n, max(ts) OVER (PARTITION BY bad, src, part ORDER BY off) AS at
    FROM (
      SELECT k0, c0 AS l0, c1 AS l1, c2 AS l2, c3 AS l3, c4 AS l4, c5 AS l5, c6 AS l6, c7 AS l7, CAST(NULL AS INT) AS r0, CAST(NULL AS BIGINT) AS r1, CAST(NULL AS INT) AS r2, CAST(NULL AS BIGINT) AS r3, CAST(NULL AS STRING) AS r4, hdr, 0 AS side, 0 AS src, ts, part, off, IF(bad = 0 AND NOT (present AND k0 IS NOT NULL), 5, bad) AS bad
      FROM (
        SELECT k0 AS k0, c0 AS c0, c1 AS c1, c2 AS c2, c3 AS c3, IF(present, ts, NULL) AS c4, IF(present, part, NULL) AS c5, IF(present, off, NULL) AS c6, k0 AS c7, present, ts, part, off, bad, hdr
        FROM (
          SELECT k0, c0, c1, c2, c3, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
          FROM d_1
        )
      )
      UNION ALL
      SELECT k0, CAST(NULL AS STRING) AS l0, CAST(NULL AS STRING) AS l1, CAST(NULL AS INT) AS l2, CAST(NULL AS ARRAY<STRING>) AS l3, CAST(NULL AS BIGINT) AS l4, CAST(NULL AS INT) AS l5, CAST(NULL AS BIGINT) AS l6, CAST(NULL AS STRING) AS l7, c0 AS r0, c1 AS r1, c2 AS r2, c3 AS r3, c4 AS r4, hdr, 1 AS side, 1 AS src, ts, part, off, IF(bad = 0 AND NOT (present AND k0 IS NOT NULL), 5, bad) AS bad
      FROM (
        SELECT k0 AS k0, c0 AS c0, IF(present, ts, NULL) AS c1, IF(present, part, NULL) AS c2, IF(present, off, NULL) AS c3, k0 AS c4, present, ts, part, off, bad, hdr
        FROM (
          SELECT k0, c0, NOT tombstone AS present, ts AS ts, part, off, bad, hdr
          FROM d_2
        )
      )
    )
  ) a
  LEFT JOIN (
    SELECT k0 AS b_part, c0 AS st, c1 AS lt, c2 AS rt, c3 AS ticks
    FROM s_3
  ) b ON part = b_part
);

-- stage 2, round 1: Put
--   reads h_4: SavedRows 1
--   reads g_5: StateLookup CSAS_X_5/Join/Left SavedGroups(stage=1, near=(600000, 600000))
--   reads g_6: StateLookup CSAS_X_5/Join/Right SavedGroups(stage=1, near=(600000, 600000))
SELECT k0, tick AS k1, part AS k2, n AS k3, l0 AS c0, l1 AS c1, l2 AS c2, l3 AS c3, l4 AS c4, l5 AS c5, l6 AS c6, l7 AS c7, ts, true AS present
FROM h_4
WHERE side = 0 AND ts >= ends_l - 86400000;

-- stage 3, round 1: Put
--   reads h_4: SavedRows 1
--   reads g_5: StateLookup CSAS_X_5/Join/Left SavedGroups(stage=1, near=(600000, 600000))
--   reads g_6: StateLookup CSAS_X_5/Join/Right SavedGroups(stage=1, near=(600000, 600000))
SELECT k0, tick AS k1, part AS k2, n AS k3, r0 AS c0, r1 AS c1, r2 AS c2, r3 AS c3, r4 AS c4, ts, true AS present
FROM h_4
WHERE side = 1 AND ts >= ends_r - 86400000;

-- stage 4, round 1: Append
--   reads h_4: SavedRows 1
--   reads g_5: StateLookup CSAS_X_5/Join/Left SavedGroups(stage=1, near=(600000, 600000))
--   reads g_6: StateLookup CSAS_X_5/Join/Right SavedGroups(stage=1, near=(600000, 600000))
SELECT k0, c0, c1, present, ts AS ts, part, off, bad, hdr
FROM (
  SELECT k0 AS k0, c2 AS c0, c8 AS c1, present, ts, part, off, bad, hdr
  FROM (
    SELECT k0, l0 AS c0, l1 AS c1, l2 AS c2, l3 AS c3, l4 AS c4, l5 AS c5, l6 AS c6, l7 AS c7, r0 AS c8, r1 AS c9, r2 AS c10, r3 AS c11, r4 AS c12, true AS present, ts, part, CAST(row_number() OVER (PARTITION BY part ORDER BY at, src, part, n, side, phase, o_ts, o_side, o_key, o_tick, o_part, o_n) AS BIGINT) AS off, 0 AS bad, hdr
    FROM (
      SELECT k0, l0, l1, l2, l3, l4, l5, l6, l7, r0, r1, r2, r3, r4, ts, at, src, part, n, side, hdr, 1 AS phase, o_ts, 0 AS o_side, NULL AS o_key, o_tick, o_part, o_n
      FROM (
        SELECT a.k0, a.l0, a.l1, a.l2, a.l3, a.l4, a.l5, a.l6, a.l7, o.r0, o.r1, o.r2, o.r3, o.r4, greatest(a.ts, o.ts) AS ts, a.at, a.src, a.part, a.n, a.side, a.hdr, a.tick, a.ends_l, a.ends_r, o.ts AS o_ts, o.tick AS o_tick, o.part AS o_part, o.n AS o_n, o.waits AS o_waits
        FROM (
          SELECT *
          FROM h_4
          WHERE side = 0
        ) a
        JOIN (
          SELECT *, CAST(NULL AS BIGINT) AS at, CAST(NULL AS INT) AS src, 1 AS side
          FROM (
            SELECT k0, k1 AS tick, k2 AS part, k3 AS n, c0 AS r0, c1 AS r1, c2 AS r2, c3 AS r3, c4 AS r4, ts, false AS waits, true AS old
            FROM g_6
          )
          UNION ALL
          SELECT k0, tick, part, n, r0, r1, r2, r3, r4, ts, true AS waits, false AS old, at, src, side
          FROM h_4
          WHERE side = 1 AND ts > own - 86400000
        ) o ON a.k0 = o.k0 AND o.ts BETWEEN a.ts - 600000 AND a.ts + 600000 AND o.ts > coalesce(a.other - 86400000, -1) AND (o.old OR struct(o.at, o.src, o.part, o.n, o.side) < struct(a.at, a.src, a.part, a.n, a.side))
        UNION ALL
        SELECT a.k0, o.l0, o.l1, o.l2, o.l3, o.l4, o.l5, o.l6, o.l7, a.r0, a.r1, a.r2, a.r3, a.r4, greatest(a.ts, o.ts) AS ts, a.at, a.src, a.part, a.n, a.side, a.hdr, a.tick, a.ends_l, a.ends_r, o.ts AS o_ts, o.tick AS o_tick, o.part AS o_part, o.n AS o_n, o.waits AS o_waits
        FROM (
          SELECT *
          FROM h_4
          WHERE side = 1
        ) a
        JOIN (
          SELECT *, CAST(NULL AS BIGINT) AS at, CAST(NULL AS INT) AS src, 0 AS side
          FROM (
            SELECT k0, k1 AS tick, k2 AS part, k3 AS n, c0 AS l0, c1 AS l1, c2 AS l2, c3 AS l3, c4 AS l4, c5 AS l5, c6 AS l6, c7 AS l7, ts, false AS waits, true AS old
            FROM g_5
          )
          UNION ALL
          SELECT k0, tick, part, n, l0, l1, l2, l3, l4, l5, l6, l7, ts, true AS waits, false AS old, at, src, side
          FROM h_4
          WHERE side = 0 AND ts > own - 86400000
        ) o ON a.k0 = o.k0 AND o.ts BETWEEN a.ts - 600000 AND a.ts + 600000 AND o.ts > coalesce(a.other - 86400000, -1) AND (o.old OR struct(o.at, o.src, o.part, o.n, o.side) < struct(a.at, a.src, a.part, a.n, a.side))
      )
      UNION ALL
      SELECT a.k0, a.l0, a.l1, a.l2, a.l3, a.l4, a.l5, a.l6, a.l7, CAST(NULL AS INT) AS r0, CAST(NULL AS BIGINT) AS r1, CAST(NULL AS INT) AS r2, CAST(NULL AS BIGINT) AS r3, CAST(NULL AS STRING) AS r4, a.ts, a.at, a.src, a.part, a.n, a.side, a.hdr, 1 AS phase, a.ts AS o_ts, 0 AS o_side, NULL AS o_key, a.tick AS o_tick, a.part AS o_part, a.n AS o_n
      FROM h_4 a
      LEFT ANTI JOIN (
        SELECT DISTINCT part, n
        FROM (
          SELECT a.k0, a.l0, a.l1, a.l2, a.l3, a.l4, a.l5, a.l6, a.l7, o.r0, o.r1, o.r2, o.r3, o.r4, greatest(a.ts, o.ts) AS ts, a.at, a.src, a.part, a.n, a.side, a.hdr, a.tick, a.ends_l, a.ends_r, o.ts AS o_ts, o.tick AS o_tick, o.part AS o_part, o.n AS o_n, o.waits AS o_waits
          FROM (
            SELECT *
            FROM h_4
            WHERE side = 0
          ) a
          JOIN (
            SELECT *, CAST(NULL AS BIGINT) AS at, CAST(NULL AS INT) AS src, 1 AS side
            FROM (
              SELECT k0, k1 AS tick, k2 AS part, k3 AS n, c0 AS r0, c1 AS r1, c2 AS r2, c3 AS r3, c4 AS r4, ts, false AS waits, true AS old
              FROM g_6
            )
            UNION ALL
            SELECT k0, tick, part, n, r0, r1, r2, r3, r4, ts, true AS waits, false AS old, at, src, side
            FROM h_4
            WHERE side = 1 AND ts > own - 86400000
          ) o ON a.k0 = o.k0 AND o.ts BETWEEN a.ts - 600000 AND a.ts + 600000 AND o.ts > coalesce(a.other - 86400000, -1) AND (o.old OR struct(o.at, o.src, o.part, o.n, o.side) < struct(a.at, a.src, a.part, a.n, a.side))
          UNION ALL
          SELECT a.k0, o.l0, o.l1, o.l2, o.l3, o.l4, o.l5, o.l6, o.l7, a.r0, a.r1, a.r2, a.r3, a.r4, greatest(a.ts, o.ts) AS ts, a.at, a.src, a.part, a.n, a.side, a.hdr, a.tick, a.ends_l, a.ends_r, o.ts AS o_ts, o.tick AS o_tick, o.part AS o_part, o.n AS o_n, o.waits AS o_waits
          FROM (
            SELECT *
            FROM h_4
            WHERE side = 1
          ) a
          JOIN (
            SELECT *, CAST(NULL AS BIGINT) AS at, CAST(NULL AS INT) AS src, 0 AS side
            FROM (
              SELECT k0, k1 AS tick, k2 AS part, k3 AS n, c0 AS l0, c1 AS l1, c2 AS l2, c3 AS l3, c4 AS l4, c5 AS l5, c6 AS l6, c7 AS l7, ts, false AS waits, true AS old
              FROM g_5
            )
            UNION ALL
            SELECT k0, tick, part, n, l0, l1, l2, l3, l4, l5, l6, l7, ts, true AS waits, false AS old, at, src, side
            FROM h_4
            WHERE side = 0 AND ts > own - 86400000
          ) o ON a.k0 = o.k0 AND o.ts BETWEEN a.ts - 600000 AND a.ts + 600000 AND o.ts > coalesce(a.other - 86400000, -1) AND (o.old OR struct(o.at, o.src, o.part, o.n, o.side) < struct(a.at, a.src, a.part, a.n, a.side))
        )
        WHERE side = 0
      ) m ON a.part = m.part AND a.n = m.n
      WHERE a.side = 0
    )
  )
);
