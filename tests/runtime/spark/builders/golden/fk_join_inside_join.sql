-- stage 0, round 0: SaveRows
--   reads o_1: ObjectInput USERS
--   reads o_2: ObjectInput REGIONS
SELECT *, IF(b_present, b1, NULL) AS bf, IF(a_present, a1, NULL) AS af
FROM (
  SELECT k0, b_present, b0 AS b0, b1 AS b1, b_ts AS b2, CAST(NULL AS INT) AS b3, CAST(NULL AS BIGINT) AS b4, k0 AS b5, b_ts, a_present, a0 AS a0, a1 AS a1, a_ts AS a2, CAST(NULL AS INT) AS a3, CAST(NULL AS BIGINT) AS a4, k0 AS a5, a_ts
  FROM (
    SELECT *
    FROM o_1
  )
);

-- stage 1, round 0: SaveRows
--   reads o_1: ObjectInput USERS
--   reads o_2: ObjectInput REGIONS
SELECT k0
FROM (
  SELECT k0, b_present, b0 AS b0, b_ts AS b1, CAST(NULL AS INT) AS b2, CAST(NULL AS BIGINT) AS b3, k0 AS b4, b_ts, a_present, a0 AS a0, a_ts AS a1, CAST(NULL AS INT) AS a2, CAST(NULL AS BIGINT) AS a3, k0 AS a4, a_ts
  FROM (
    SELECT *
    FROM o_2
  )
);

-- stage 2, round 0: SaveRows
--   reads o_1: ObjectInput USERS
--   reads o_2: ObjectInput REGIONS
SELECT *
FROM (
  SELECT k0
  FROM (
    SELECT k0, b_present, b0 AS b0, b_ts AS b1, CAST(NULL AS INT) AS b2, CAST(NULL AS BIGINT) AS b3, k0 AS b4, b_ts, a_present, a0 AS a0, a_ts AS a1, CAST(NULL AS INT) AS a2, CAST(NULL AS BIGINT) AS a3, k0 AS a4, a_ts
    FROM (
      SELECT *
      FROM o_2
    )
  )
  UNION
  SELECT bf
  FROM (
    SELECT *, IF(b_present, b1, NULL) AS bf, IF(a_present, a1, NULL) AS af
    FROM (
      SELECT k0, b_present, b0 AS b0, b1 AS b1, b_ts AS b2, CAST(NULL AS INT) AS b3, CAST(NULL AS BIGINT) AS b4, k0 AS b5, b_ts, a_present, a0 AS a0, a1 AS a1, a_ts AS a2, CAST(NULL AS INT) AS a3, CAST(NULL AS BIGINT) AS a4, k0 AS a5, a_ts
      FROM (
        SELECT *
        FROM o_1
      )
    )
  )
  UNION
  SELECT af
  FROM (
    SELECT *, IF(b_present, b1, NULL) AS bf, IF(a_present, a1, NULL) AS af
    FROM (
      SELECT k0, b_present, b0 AS b0, b1 AS b1, b_ts AS b2, CAST(NULL AS INT) AS b3, CAST(NULL AS BIGINT) AS b4, k0 AS b5, b_ts, a_present, a0 AS a0, a1 AS a1, a_ts AS a2, CAST(NULL AS INT) AS a3, CAST(NULL AS BIGINT) AS a4, k0 AS a5, a_ts
      FROM (
        SELECT *
        FROM o_1
      )
    )
  )
)
WHERE k0 IS NOT NULL;

-- stage 3, round 1: Put
--   reads h_3: SavedRows 2
--   reads h_4: SavedRows 0
SELECT af AS k0, k0 AS k1, a0 AS c0, a1 AS c1, a2 AS c2, a3 AS c3, a4 AS c4, a5 AS c5, a_ts AS ts, true AS present
FROM h_4
WHERE a_present AND af IS NOT NULL
UNION ALL
SELECT bf AS k0, k0 AS k1, CAST(NULL AS STRING) AS c0, CAST(NULL AS STRING) AS c1, CAST(NULL AS BIGINT) AS c2, CAST(NULL AS INT) AS c3, CAST(NULL AS BIGINT) AS c4, CAST(NULL AS STRING) AS c5, b_ts AS ts, false AS present
FROM h_4
WHERE bf IS NOT NULL AND NOT (af <=> bf);

-- stage 4, round 1: SaveRows
--   reads h_3: SavedRows 2
--   reads h_4: SavedRows 0
--   reads h_5: SavedRows 1
--   reads g_6: StateLookup CTAS_X_5/L_Join/Named SavedGroups(stage=1, near=None)
--   reads l_7: TableLookup REGIONS 2
--   reads o_2: ObjectInput REGIONS
--   reads o_8: ObjectInput ADDRESSES
SELECT l.k0, l.b_present AND coalesce(x.b_present, false) AS b_present, l.b0, l.b1, l.b2, l.b3, l.b4, l.b5, IF(coalesce(x.b_present, false), x.b0, NULL) AS b6, IF(coalesce(x.b_present, false), x.b1, NULL) AS b7, IF(coalesce(x.b_present, false), x.b2, NULL) AS b8, IF(coalesce(x.b_present, false), x.b3, NULL) AS b9, IF(coalesce(x.b_present, false), x.b4, NULL) AS b10, greatest(l.b_ts, x.b_ts) AS b_ts, l.a_present AND coalesce(y.a_present, false) AS a_present, l.a0, l.a1, l.a2, l.a3, l.a4, l.a5, IF(coalesce(y.a_present, false), y.a0, NULL) AS a6, IF(coalesce(y.a_present, false), y.a1, NULL) AS a7, IF(coalesce(y.a_present, false), y.a2, NULL) AS a8, IF(coalesce(y.a_present, false), y.a3, NULL) AS a9, IF(coalesce(y.a_present, false), y.a4, NULL) AS a10, greatest(l.a_ts, y.a_ts) AS a_ts
FROM (
  SELECT *
  FROM h_4
  UNION ALL
  SELECT g.k1 AS k0, true AS b_present, g.c0 AS b0, g.c1 AS b1, g.c2 AS b2, g.c3 AS b3, g.c4 AS b4, g.c5 AS b5, g.ts AS b_ts, true AS a_present, g.c0 AS a0, g.c1 AS a1, g.c2 AS a2, g.c3 AS a3, g.c4 AS a4, g.c5 AS a5, g.ts AS a_ts, g.k0 AS bf, g.k0 AS af
  FROM g_6 g
  LEFT ANTI JOIN h_4 h ON g.k1 <=> h.k0
) l
LEFT JOIN (
  SELECT k0, b_present, b0 AS b0, b_ts AS b1, CAST(NULL AS INT) AS b2, CAST(NULL AS BIGINT) AS b3, k0 AS b4, b_ts, a_present, a0 AS a0, a_ts AS a1, CAST(NULL AS INT) AS a2, CAST(NULL AS BIGINT) AS a3, k0 AS a4, a_ts
  FROM (
    SELECT h.k0, coalesce(d.b_present, f.ts IS NOT NULL) AS b_present, IF(d.a_present IS NULL, f.c0, d.b0) AS b0, IF(d.a_present IS NULL, f.ts, d.b_ts) AS b_ts, coalesce(d.a_present, f.ts IS NOT NULL) AS a_present, IF(d.a_present IS NULL, f.c0, d.a0) AS a0, IF(d.a_present IS NULL, f.ts, d.a_ts) AS a_ts
    FROM (
      SELECT DISTINCT k0
      FROM h_3
    ) h
    LEFT JOIN o_2 d ON h.k0 = d.k0
    LEFT JOIN l_7 f ON h.k0 = f.k0
  )
) x ON x.k0 = l.bf
LEFT JOIN (
  SELECT k0, b_present, b0 AS b0, b_ts AS b1, CAST(NULL AS INT) AS b2, CAST(NULL AS BIGINT) AS b3, k0 AS b4, b_ts, a_present, a0 AS a0, a_ts AS a1, CAST(NULL AS INT) AS a2, CAST(NULL AS BIGINT) AS a3, k0 AS a4, a_ts
  FROM (
    SELECT h.k0, coalesce(d.b_present, f.ts IS NOT NULL) AS b_present, IF(d.a_present IS NULL, f.c0, d.b0) AS b0, IF(d.a_present IS NULL, f.ts, d.b_ts) AS b_ts, coalesce(d.a_present, f.ts IS NOT NULL) AS a_present, IF(d.a_present IS NULL, f.c0, d.a0) AS a0, IF(d.a_present IS NULL, f.ts, d.a_ts) AS a_ts
    FROM (
      SELECT DISTINCT k0
      FROM h_3
    ) h
    LEFT JOIN o_2 d ON h.k0 = d.k0
    LEFT JOIN l_7 f ON h.k0 = f.k0
  )
) y ON y.k0 = l.af;

-- stage 5, round 1: SaveRows
--   reads h_3: SavedRows 2
--   reads h_4: SavedRows 0
--   reads h_5: SavedRows 1
--   reads g_6: StateLookup CTAS_X_5/L_Join/Named SavedGroups(stage=1, near=None)
--   reads l_7: TableLookup REGIONS 2
--   reads o_2: ObjectInput REGIONS
--   reads o_8: ObjectInput ADDRESSES
SELECT k0
FROM (
  SELECT l.k0, l.b_present AND coalesce(x.b_present, false) AS b_present, l.b0, l.b1, l.b2, l.b3, l.b4, l.b5, IF(coalesce(x.b_present, false), x.b0, NULL) AS b6, IF(coalesce(x.b_present, false), x.b1, NULL) AS b7, IF(coalesce(x.b_present, false), x.b2, NULL) AS b8, IF(coalesce(x.b_present, false), x.b3, NULL) AS b9, IF(coalesce(x.b_present, false), x.b4, NULL) AS b10, greatest(l.b_ts, x.b_ts) AS b_ts, l.a_present AND coalesce(y.a_present, false) AS a_present, l.a0, l.a1, l.a2, l.a3, l.a4, l.a5, IF(coalesce(y.a_present, false), y.a0, NULL) AS a6, IF(coalesce(y.a_present, false), y.a1, NULL) AS a7, IF(coalesce(y.a_present, false), y.a2, NULL) AS a8, IF(coalesce(y.a_present, false), y.a3, NULL) AS a9, IF(coalesce(y.a_present, false), y.a4, NULL) AS a10, greatest(l.a_ts, y.a_ts) AS a_ts
  FROM (
    SELECT *
    FROM h_4
    UNION ALL
    SELECT g.k1 AS k0, true AS b_present, g.c0 AS b0, g.c1 AS b1, g.c2 AS b2, g.c3 AS b3, g.c4 AS b4, g.c5 AS b5, g.ts AS b_ts, true AS a_present, g.c0 AS a0, g.c1 AS a1, g.c2 AS a2, g.c3 AS a3, g.c4 AS a4, g.c5 AS a5, g.ts AS a_ts, g.k0 AS bf, g.k0 AS af
    FROM g_6 g
    LEFT ANTI JOIN h_4 h ON g.k1 <=> h.k0
  ) l
  LEFT JOIN (
    SELECT k0, b_present, b0 AS b0, b_ts AS b1, CAST(NULL AS INT) AS b2, CAST(NULL AS BIGINT) AS b3, k0 AS b4, b_ts, a_present, a0 AS a0, a_ts AS a1, CAST(NULL AS INT) AS a2, CAST(NULL AS BIGINT) AS a3, k0 AS a4, a_ts
    FROM (
      SELECT h.k0, coalesce(d.b_present, f.ts IS NOT NULL) AS b_present, IF(d.a_present IS NULL, f.c0, d.b0) AS b0, IF(d.a_present IS NULL, f.ts, d.b_ts) AS b_ts, coalesce(d.a_present, f.ts IS NOT NULL) AS a_present, IF(d.a_present IS NULL, f.c0, d.a0) AS a0, IF(d.a_present IS NULL, f.ts, d.a_ts) AS a_ts
      FROM (
        SELECT DISTINCT k0
        FROM h_3
      ) h
      LEFT JOIN o_2 d ON h.k0 = d.k0
      LEFT JOIN l_7 f ON h.k0 = f.k0
    )
  ) x ON x.k0 = l.bf
  LEFT JOIN (
    SELECT k0, b_present, b0 AS b0, b_ts AS b1, CAST(NULL AS INT) AS b2, CAST(NULL AS BIGINT) AS b3, k0 AS b4, b_ts, a_present, a0 AS a0, a_ts AS a1, CAST(NULL AS INT) AS a2, CAST(NULL AS BIGINT) AS a3, k0 AS a4, a_ts
    FROM (
      SELECT h.k0, coalesce(d.b_present, f.ts IS NOT NULL) AS b_present, IF(d.a_present IS NULL, f.c0, d.b0) AS b0, IF(d.a_present IS NULL, f.ts, d.b_ts) AS b_ts, coalesce(d.a_present, f.ts IS NOT NULL) AS a_present, IF(d.a_present IS NULL, f.c0, d.a0) AS a0, IF(d.a_present IS NULL, f.ts, d.a_ts) AS a_ts
      FROM (
        SELECT DISTINCT k0
        FROM h_3
      ) h
      LEFT JOIN o_2 d ON h.k0 = d.k0
      LEFT JOIN l_7 f ON h.k0 = f.k0
    )
  ) y ON y.k0 = l.af
)
UNION
SELECT k0
FROM (
  SELECT *
  FROM o_8
);

-- stage 6, round 2: Put
--   reads h_9: SavedRows 5
--   reads h_10: SavedRows 4
SELECT k0, a0 AS c0, a1 AS c1, a2 AS c2, a3 AS c3, a4 AS c4, a5 AS c5, a6 AS c6, a7 AS c7, a8 AS c8, a9 AS c9, a10 AS c10, coalesce(a_ts, b_ts) AS ts, a_present AS present
FROM h_10
WHERE a_present OR b_present;

-- stage 7, round 2: Upsert
--   reads h_9: SavedRows 5
--   reads h_10: SavedRows 4
--   reads s_11: StateLookup CTAS_X_5/L_Join/Rows SavedKeys(stage=5)
--   reads l_12: TableLookup ADDRESSES 5
--   reads o_8: ObjectInput ADDRESSES
SELECT k0, a0 AS c0, a1 AS c1, coalesce(a_ts, b_ts) AS ts, a_present AS present
FROM (
  SELECT k0, b_present, b6 AS b0, b11 AS b1, b_ts, a_present, a6 AS a0, a11 AS a1, a_ts
  FROM (
    SELECT l.k0, l.b_present AND r.b_present AS b_present, IF(l.b_present, l.b0, NULL) AS b0, IF(l.b_present, l.b1, NULL) AS b1, IF(l.b_present, l.b2, NULL) AS b2, IF(l.b_present, l.b3, NULL) AS b3, IF(l.b_present, l.b4, NULL) AS b4, IF(l.b_present, l.b5, NULL) AS b5, IF(l.b_present, l.b6, NULL) AS b6, IF(l.b_present, l.b7, NULL) AS b7, IF(l.b_present, l.b8, NULL) AS b8, IF(l.b_present, l.b9, NULL) AS b9, IF(l.b_present, l.b10, NULL) AS b10, IF(r.b_present, r.b0, NULL) AS b11, IF(r.b_present, r.b1, NULL) AS b12, IF(r.b_present, r.b2, NULL) AS b13, IF(r.b_present, r.b3, NULL) AS b14, IF(r.b_present, r.b4, NULL) AS b15, greatest(l.b_ts, r.b_ts) AS b_ts, l.a_present AND r.a_present AS a_present, IF(l.a_present, l.a0, NULL) AS a0, IF(l.a_present, l.a1, NULL) AS a1, IF(l.a_present, l.a2, NULL) AS a2, IF(l.a_present, l.a3, NULL) AS a3, IF(l.a_present, l.a4, NULL) AS a4, IF(l.a_present, l.a5, NULL) AS a5, IF(l.a_present, l.a6, NULL) AS a6, IF(l.a_present, l.a7, NULL) AS a7, IF(l.a_present, l.a8, NULL) AS a8, IF(l.a_present, l.a9, NULL) AS a9, IF(l.a_present, l.a10, NULL) AS a10, IF(r.a_present, r.a0, NULL) AS a11, IF(r.a_present, r.a1, NULL) AS a12, IF(r.a_present, r.a2, NULL) AS a13, IF(r.a_present, r.a3, NULL) AS a14, IF(r.a_present, r.a4, NULL) AS a15, greatest(l.a_ts, r.a_ts) AS a_ts
    FROM (
      SELECT h.k0, coalesce(d.b_present, f.ts IS NOT NULL) AS b_present, IF(d.a_present IS NULL, f.c0, d.b0) AS b0, IF(d.a_present IS NULL, f.c1, d.b1) AS b1, IF(d.a_present IS NULL, f.c2, d.b2) AS b2, IF(d.a_present IS NULL, f.c3, d.b3) AS b3, IF(d.a_present IS NULL, f.c4, d.b4) AS b4, IF(d.a_present IS NULL, f.c5, d.b5) AS b5, IF(d.a_present IS NULL, f.c6, d.b6) AS b6, IF(d.a_present IS NULL, f.c7, d.b7) AS b7, IF(d.a_present IS NULL, f.c8, d.b8) AS b8, IF(d.a_present IS NULL, f.c9, d.b9) AS b9, IF(d.a_present IS NULL, f.c10, d.b10) AS b10, IF(d.a_present IS NULL, f.ts, d.b_ts) AS b_ts, coalesce(d.a_present, f.ts IS NOT NULL) AS a_present, IF(d.a_present IS NULL, f.c0, d.a0) AS a0, IF(d.a_present IS NULL, f.c1, d.a1) AS a1, IF(d.a_present IS NULL, f.c2, d.a2) AS a2, IF(d.a_present IS NULL, f.c3, d.a3) AS a3, IF(d.a_present IS NULL, f.c4, d.a4) AS a4, IF(d.a_present IS NULL, f.c5, d.a5) AS a5, IF(d.a_present IS NULL, f.c6, d.a6) AS a6, IF(d.a_present IS NULL, f.c7, d.a7) AS a7, IF(d.a_present IS NULL, f.c8, d.a8) AS a8, IF(d.a_present IS NULL, f.c9, d.a9) AS a9, IF(d.a_present IS NULL, f.c10, d.a10) AS a10, IF(d.a_present IS NULL, f.ts, d.a_ts) AS a_ts
      FROM (
        SELECT DISTINCT k0
        FROM h_9
      ) h
      LEFT JOIN h_10 d ON h.k0 = d.k0
      LEFT JOIN s_11 f ON h.k0 = f.k0
    ) l
    JOIN (
      SELECT k0, b_present, b0 AS b0, b_ts AS b1, CAST(NULL AS INT) AS b2, CAST(NULL AS BIGINT) AS b3, k0 AS b4, b_ts, a_present, a0 AS a0, a_ts AS a1, CAST(NULL AS INT) AS a2, CAST(NULL AS BIGINT) AS a3, k0 AS a4, a_ts
      FROM (
        SELECT h.k0, coalesce(d.b_present, f.ts IS NOT NULL) AS b_present, IF(d.a_present IS NULL, f.c0, d.b0) AS b0, IF(d.a_present IS NULL, f.ts, d.b_ts) AS b_ts, coalesce(d.a_present, f.ts IS NOT NULL) AS a_present, IF(d.a_present IS NULL, f.c0, d.a0) AS a0, IF(d.a_present IS NULL, f.ts, d.a_ts) AS a_ts
        FROM (
          SELECT DISTINCT k0
          FROM h_9
        ) h
        LEFT JOIN o_8 d ON h.k0 = d.k0
        LEFT JOIN l_12 f ON h.k0 = f.k0
      )
    ) r ON l.k0 = r.k0
  )
);
