//! Structures lie in memory as the headers of libibverbs and librdmacm have them: a C compiler compares.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use roci_verbs::{abi, cm};
use std::io::Write;
use std::mem::offset_of;
use std::process::{Command, Stdio};

/// Assertions about the size of a structure and where its fields are.
macro_rules! assertions {
    ($room:path => $($rust:ident $c:literal: $($field:tt $(as $name:literal)?),*;)*) => {{
        use $room as room;
        let mut text = String::new();
        $(
            if !$c.ends_with(" part") {
                text += &format!("_Static_assert(sizeof({0}) == {1}, \"{0}\");\n", $c, size_of::<room::$rust>());
            }
            $(
                let name = [$($name,)? stringify!($field)][0];
                let of = $c.trim_end_matches(" part");
                let at = offset_of!(room::$rust, $field);
                text += &format!("_Static_assert(offsetof({of}, {name}) == {at}, \"{of}.{name}\");\n");
            )*
        )*
        text
    }};
}

#[test]
fn structures_lie_in_memory_as_the_header_has_them() {
    let mut text = "#include <stddef.h>\n#include <infiniband/verbs.h>\n#undef ibv_query_port\n".to_owned();
    text += &assertions! { roci_verbs::abi =>
        Device "struct ibv_device": node_type, name, dev_name, dev_path, ibdev_path;
        ContextOps "struct ibv_context_ops": alloc_mw, bind_mw, dealloc_mw, poll_cq, req_notify_cq, post_srq_recv, post_send, post_recv;
        Context "struct ibv_context": device, ops, cmd_fd, async_fd, num_comp_vectors, mutex, abi_compat;
        Pd "struct ibv_pd": context, handle;
        Td "struct ibv_td": context;
        TdInitAttr "struct ibv_td_init_attr": comp_mask;
        ParentDomainInitAttr "struct ibv_parent_domain_init_attr": pd, td, comp_mask, alloc_free as "alloc", pd_context;
        Mr "struct ibv_mr": context, pd, addr, length, handle, lkey, rkey;
        Mw "struct ibv_mw": context, pd, rkey, handle, kind as "type";
        MwBindInfo "struct ibv_mw_bind_info": mr, addr, length, mw_access_flags;
        MwBind "struct ibv_mw_bind": wr_id, send_flags, bind_info;
        CompChannel "struct ibv_comp_channel": context, fd, refcnt;
        Cq "struct ibv_cq": context, channel, cq_context, handle, cqe, mutex, cond, comp_events_completed, async_events_completed;
        CqEx "struct ibv_cq_ex": comp_mask, status, wr_id, start_poll, next_poll, end_poll, read_opcode, read_vendor_err, read_byte_len,
            read_imm_data, read_qp_num, read_src_qp, read_wc_flags, read_slid, read_sl, read_dlid_path_bits,
            read_completion_ts, read_cvlan_flow_tag_tm_info as "read_cvlan", read_completion_wallclock_ns;
        PollCqAttr "struct ibv_poll_cq_attr": comp_mask;
        ModifyCqAttr "struct ibv_modify_cq_attr": attr_mask, cq_count as "moderate.cq_count", cq_period as "moderate.cq_period";
        CqInitAttrEx "struct ibv_cq_init_attr_ex": cqe, cq_context, channel, comp_vector, wc_flags, comp_mask, flags, parent_domain;
        Srq "struct ibv_srq": context, srq_context, pd, handle, mutex, cond, events_completed;
        Qp "struct ibv_qp": context, qp_context, pd, send_cq, recv_cq, srq, handle, qp_num, state, qp_type, mutex, cond, events_completed;
        QpEx "struct ibv_qp_ex": comp_mask, wr_id, wr_flags, wr_atomic_cmp_swp, wr_atomic_fetch_add, wr_bind_mw, wr_local_inv, wr_rdma_read, wr_rdma_write,
            wr_rdma_write_imm, wr_send, wr_send_imm, wr_send_inv, wr_send_tso, wr_set_ud_addr, wr_set_inline_data, wr_set_inline_data_list,
            wr_set_sge, wr_set_sge_list, wr_start, wr_complete, wr_abort;
        DataBuf "struct ibv_data_buf": addr, length;
        Ah "struct ibv_ah": context, pd, handle;
        Sge "struct ibv_sge": addr, length, lkey;
        RecvWr "struct ibv_recv_wr": wr_id, next, sg_list, num_sge;
        SendWr "struct ibv_send_wr": wr_id, next, sg_list, num_sge, opcode, send_flags, imm_data, wr, qp_type, bind_mw;
        Wc "struct ibv_wc": wr_id, status, opcode, vendor_err, byte_len, imm_data, qp_num, src_qp, wc_flags, pkey_index, slid, sl, dlid_path_bits;
        QpCap "struct ibv_qp_cap": max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
        QpInitAttr "struct ibv_qp_init_attr": qp_context, send_cq, recv_cq, srq, cap, qp_type, sq_sig_all;
        QpInitAttrEx "struct ibv_qp_init_attr_ex": cap, qp_type, sq_sig_all, comp_mask, pd, create_flags, max_tso_header, rwq_ind_tbl,
            rx_hash_conf, source_qpn, send_ops_flags;
        Gid "union ibv_gid": raw;
        GlobalRoute "struct ibv_global_route": dgid, flow_label, sgid_index, hop_limit, traffic_class;
        AhAttr "struct ibv_ah_attr": grh, dlid, sl, static_rate, is_global, port_num;
        QpAttr "struct ibv_qp_attr": qp_state, path_mtu, qkey, rq_psn, sq_psn, dest_qp_num, qp_access_flags, cap, ah_attr, alt_ah_attr,
            pkey_index, en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num, timeout, retry_cnt,
            rnr_retry, alt_timeout, rate_limit;
        SrqAttr "struct ibv_srq_attr": max_wr, max_sge, srq_limit;
        SrqInitAttr "struct ibv_srq_init_attr": srq_context, attr;
        AsyncEvent "struct ibv_async_event": element, event_type;
        GidEntry "struct ibv_gid_entry": gid, gid_index, port_num, gid_type, ndev_ifindex;
        DeviceAttr "struct ibv_device_attr": fw_ver, node_guid, max_mr_size, vendor_id, max_qp, max_qp_wr, device_cap_flags, max_sge, max_cqe,
            max_qp_rd_atom, atomic_cap, max_ah, max_srq_sge, max_pkeys, local_ca_ack_delay, phys_port_cnt;
        OdpCaps "struct ibv_odp_caps": general_caps, per_transport_caps;
        DeviceAttrEx "struct ibv_device_attr_ex": orig_attr, comp_mask, odp_caps, completion_timestamp_mask, hca_core_clock,
            device_cap_flags_ex, tso_caps, rss_caps, max_wq_type_rq, packet_pacing_caps, raw_packet_caps, tm_caps, cq_mod_caps, max_dm_size,
            pci_atomic_caps, xrc_odp_caps, phys_port_cnt_ex;
        ValuesEx "struct ibv_values_ex": comp_mask, raw_clock;
        PortAttr "struct ibv_port_attr part": state, max_mtu, active_mtu, gid_tbl_len, port_cap_flags, max_msg_sz, pkey_tbl_len, lid, active_width,
            active_speed, phys_state, link_layer, flags;
    };
    // The end of a structure that grows at its beginning.
    let tail = [
        ("advise_mr", offset_of!(abi::VerbsContext, advise_mr)),
        ("alloc_parent_domain", offset_of!(abi::VerbsContext, alloc_parent_domain)),
        ("dealloc_td", offset_of!(abi::VerbsContext, dealloc_td)),
        ("alloc_td", offset_of!(abi::VerbsContext, alloc_td)),
        ("modify_cq", offset_of!(abi::VerbsContext, modify_cq)),
        ("query_rt_values", offset_of!(abi::VerbsContext, query_rt_values)),
        ("query_device_ex", offset_of!(abi::VerbsContext, query_device_ex)),
        ("create_cq_ex", offset_of!(abi::VerbsContext, create_cq_ex)),
        ("create_qp_ex", offset_of!(abi::VerbsContext, create_qp_ex)),
        ("sz", offset_of!(abi::VerbsContext, sz)),
        ("context", offset_of!(abi::VerbsContext, context)),
    ];
    for (name, at) in tail {
        let from_end = size_of::<abi::VerbsContext>() - at;
        text += &format!(
            "_Static_assert(sizeof(struct verbs_context) - offsetof(struct verbs_context, {name}) == {from_end}, \"{name}\");\n"
        );
    }
    for (name, value) in [
        ("IBV_WC_EX_WITH_COMPLETION_TIMESTAMP", 1 << 7),
        ("IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK", 1 << 11),
        ("IBV_CQ_INIT_ATTR_MASK_PD", 2),
        ("IBV_CQ_ATTR_MODERATE", abi::CQ_ATTR_MODERATE),
        ("IBV_VALUES_MASK_RAW_CLOCK", 1),
        ("IBV_QPT_UC", abi::qp_type::UC),
        ("IBV_QPT_UD", abi::qp_type::UD),
        ("IBV_QPS_ERR", abi::qp_state::ERR),
        ("IBV_QP_DEST_QPN", abi::attr_mask::DEST_QPN.cast_unsigned()),
        ("IBV_QP_RATE_LIMIT", abi::attr_mask::RATE_LIMIT.cast_unsigned()),
        ("IBV_WR_SEND_WITH_INV", abi::wr_opcode::SEND_WITH_INV),
        ("IBV_WR_BIND_MW", abi::wr_opcode::BIND_MW),
        ("IBV_WR_LOCAL_INV", abi::wr_opcode::LOCAL_INV),
        ("IBV_MW_TYPE_2", abi::mw_type::TYPE_2),
        ("IBV_WC_MW_BIND_ERR", abi::wc::MW_BIND_ERR),
        ("IBV_WC_BIND_MW", abi::wc::BIND_MW),
        ("IBV_WC_LOCAL_INV", abi::wc::LOCAL_INV),
        ("IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B", 1 << 17 | 1 << 24),
        ("IBV_WR_ATOMIC_FETCH_AND_ADD", abi::wr_opcode::ATOMIC_FETCH_AND_ADD),
        ("IBV_SEND_INLINE", abi::send_flags::INLINE),
        ("IBV_WC_RNR_RETRY_EXC_ERR", abi::wc::RNR_RETRY_EXC_ERR),
        ("IBV_WC_RECV_RDMA_WITH_IMM", abi::wc::RECV_RDMA_WITH_IMM),
        ("IBV_WC_WITH_INV", abi::wc::WITH_INV),
        ("IBV_EVENT_QP_LAST_WQE_REACHED", abi::event::QP_LAST_WQE_REACHED),
        ("IBV_ACCESS_REMOTE_ATOMIC", abi::access::REMOTE_ATOMIC),
    ] {
        text += &format!("_Static_assert({name} == {value}, \"{name}\");\n");
    }

    compiled(&text);
}

#[test]
fn structures_of_librdmacm_lie_in_memory_as_the_header_has_them() {
    let mut text = "#include <stddef.h>\n#include <rdma/rdma_cma.h>\n#include <infiniband/sa.h>\n".to_owned();
    text += &assertions! { roci_verbs::cm::abi =>
        IbAddr "struct rdma_ib_addr": sgid, dgid, pkey;
        Addr "struct rdma_addr": src_storage, dst_storage, addr;
        PathRec "struct ibv_sa_path_rec": dgid, sgid, dlid, slid, raw_traffic, flow_label, hop_limit, traffic_class, reversible, numb_path,
            pkey, sl, mtu_selector, mtu, rate_selector, rate, packet_life_time_selector, packet_life_time, preference;
        Route "struct rdma_route": addr, path_rec, num_paths;
        EventChannel "struct rdma_event_channel": fd;
        CmId "struct rdma_cm_id": verbs, channel, context, qp, route, ps, port_num, event, send_cq_channel, send_cq, recv_cq_channel,
            recv_cq, srq, pd, qp_type;
        ConnParam "struct rdma_conn_param": private_data, private_data_len, responder_resources, initiator_depth, flow_control, retry_count,
            rnr_retry_count, srq, qp_num;
        UdParam "struct rdma_ud_param": private_data, private_data_len, ah_attr, qp_num, qkey;
        CmEvent "struct rdma_cm_event": id, listen_id, event, status, param;
        AddrInfo "struct rdma_addrinfo": ai_flags, ai_family, ai_qp_type, ai_port_space, ai_src_len, ai_dst_len, ai_src_addr, ai_dst_addr,
            ai_src_canonname, ai_dst_canonname, ai_route_len, ai_route, ai_connect_len, ai_connect, ai_next;
    };
    use cm::abi::{event, option, port_space, rai};
    for (name, value) in [
        ("RDMA_CM_EVENT_ADDR_ERROR", event::ADDR_ERROR),
        ("RDMA_CM_EVENT_CONNECT_REQUEST", event::CONNECT_REQUEST),
        ("RDMA_CM_EVENT_UNREACHABLE", event::UNREACHABLE),
        ("RDMA_CM_EVENT_DISCONNECTED", event::DISCONNECTED),
        ("RDMA_CM_EVENT_TIMEWAIT_EXIT", event::TIMEWAIT_EXIT),
        ("RDMA_PS_IPOIB", port_space::IPOIB),
        ("RDMA_PS_TCP", port_space::TCP),
        ("RDMA_PS_UDP", port_space::UDP),
        ("RDMA_PS_IB", port_space::IB),
        ("RAI_PASSIVE", rai::PASSIVE.cast_unsigned()),
        ("RAI_FAMILY", rai::FAMILY.cast_unsigned()),
        ("RDMA_OPTION_ID_ACK_TIMEOUT", option::ID_ACK_TIMEOUT.cast_unsigned()),
        ("RDMA_MAX_RESP_RES", cm::abi::MAX_RESP_RES.into()),
    ] {
        text += &format!("_Static_assert({name} == {value}, \"{name}\");\n");
    }
    compiled(&text);
}

/// That a C compiler takes it.
fn compiled(text: &str) {
    let mut compiler = Command::new("cc")
        .args(["-fsyntax-only", "-x", "c", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    compiler.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = compiler.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
