-- Stock-Level, clause 2.8: how many items of the last twenty orders of the terminal's district run low.
\set w_id :client_id % :warehouses + 1
\set d_id :client_id / :warehouses % 10 + 1
\set threshold random(10, 20)
BEGIN;
SELECT d_next_o_id FROM district WHERE d_w_id = :w_id AND d_id = :d_id \gset
SELECT count(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id
    WHERE ol_w_id = :w_id AND ol_d_id = :d_id AND ol_o_id < :d_next_o_id AND ol_o_id >= :d_next_o_id::integer - 20
    AND s_quantity < :threshold;
COMMIT;
