-- Wireshark and tshark: takes Rocinante's header layouts apart, as docs/wire.md draws them.
--
--   tshark -X lua_script:rocinante.lua -o rocinante.layout:irn -r capture.pcapng
--   wireshark -X lua_script:rocinante.lua            (Preferences, Protocols, ROCINANTE)
--
-- Nothing in a packet says which layout its queue pair has, so the preferences do: one layout for all, and others for
-- single queue pairs by the number in the BTH, as in "0x11=irn; 0x12=cc(int,time,2)". What is in the standard layout,
-- datagrams and notifications go to Wireshark's own dissector.
--
-- A CC header is written by its parts, in their order: "int" (11 words), "time" (2 words), and a number, that of the
-- law's own words.

local rocinante = Proto("rocinante", "Rocinante")

local OPCODES = {
  [0x00] = "SEND_FIRST", [0x01] = "SEND_MIDDLE", [0x02] = "SEND_LAST", [0x03] = "SEND_LAST_IMMEDIATE",
  [0x04] = "SEND_ONLY", [0x05] = "SEND_ONLY_IMMEDIATE", [0x06] = "WRITE_FIRST", [0x07] = "WRITE_MIDDLE",
  [0x08] = "WRITE_LAST", [0x09] = "WRITE_LAST_IMMEDIATE", [0x0a] = "WRITE_ONLY",
  [0x0b] = "WRITE_ONLY_IMMEDIATE", [0x0c] = "READ_REQUEST", [0x0d] = "READ_RESPONSE_FIRST",
  [0x0e] = "READ_RESPONSE_MIDDLE", [0x0f] = "READ_RESPONSE_LAST", [0x10] = "READ_RESPONSE_ONLY",
  [0x11] = "ACKNOWLEDGE", [0x12] = "ATOMIC_ACKNOWLEDGE", [0x13] = "COMPARE_SWAP", [0x14] = "FETCH_ADD",
  [0x16] = "SEND_LAST_INVALIDATE", [0x17] = "SEND_ONLY_INVALIDATE", [0xc0] = "READ_ACKNOWLEDGE",
  [0xc1] = "PULL", [0xd1] = "HOMA_GRANT", [0xd2] = "HOMA_RESEND", [0xd3] = "HOMA_RPC_UNKNOWN",
  [0xd4] = "HOMA_BUSY", [0xd5] = "HOMA_CUTOFFS", [0xd6] = "HOMA_FREEZE", [0xd7] = "HOMA_NEED_ACK",
  [0xd8] = "HOMA_ACK", [0xf8] = "LAW_0", [0xf9] = "LAW_1", [0xfa] = "LAW_2", [0xfb] = "LAW_3",
  [0xfc] = "LAW_4", [0xfd] = "LAW_5", [0xfe] = "LAW_6", [0xff] = "LAW_7",
}
local HOMA_TYPES = {
  [0x10] = "DATA", [0x11] = "GRANT", [0x12] = "RESEND", [0x13] = "RPC_UNKNOWN", [0x14] = "BUSY",
  [0x15] = "CUTOFFS", [0x16] = "FREEZE", [0x17] = "NEED_ACK", [0x18] = "ACK",
}
local RATES = {
  [0] = "25 Gb/s", [1] = "50 Gb/s", [2] = "100 Gb/s", [3] = "200 Gb/s", [4] = "400 Gb/s", [5] = "other",
  [6] = "other", [7] = "other",
}

local function set(...)
  local members = {}
  for _, opcode in ipairs({ ... }) do members[opcode] = true end
  return members
end

-- Which opcodes carry what (IBTA's table of operations).
local SENDS = set(0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x16, 0x17)
local WRITES = set(0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b)
local WRITES_WITH_IMMEDIATE = set(0x09, 0x0b)
local RETHS = set(0x06, 0x0a, 0x0b, 0x0c)
local AETHS = set(0x0d, 0x0f, 0x10, 0x11, 0x12, 0xc0)
local READ_RESPONSES = set(0x0d, 0x0e, 0x0f, 0x10)
local ATOMICS = set(0x13, 0x14)
local ATOMIC_RESULTS = set(0x12)
local IMMEDIATES = set(0x03, 0x05, 0x09, 0x0b)
local INVALIDATES = set(0x16, 0x17)
local ACKNOWLEDGEMENTS = set(0x11, 0xc0)

-- Fields, by what follows "rocinante." in a filter.
local f, fields = {}, {}
local function field(kind, name, label, ...)
  f[name] = ProtoField[kind]("rocinante." .. name, label, ...)
  fields[#fields + 1] = f[name]
end

field("string", "layout", "Layout")
field("uint8", "opcode", "Opcode", base.HEX, OPCODES)
field("bool", "solicited", "Solicited event")
field("uint8", "pad", "Octets of pad")
field("uint16", "pkey", "Partition key", base.HEX)
field("bool", "fecn", "FECN")
field("bool", "becn", "BECN")
field("uint24", "qpn", "Destination queue pair", base.HEX)
field("bool", "ack_request", "Acknowledgement requested")
field("uint24", "psn", "Packet sequence number")
field("uint64", "reth.va", "Virtual address", base.HEX)
field("uint32", "reth.rkey", "Remote key", base.HEX)
field("uint32", "reth.length", "Octets of the message from here on")
field("uint64", "atomic.va", "Virtual address", base.HEX)
field("uint32", "atomic.rkey", "Remote key", base.HEX)
field("uint64", "atomic.swap_or_add", "Swap or add value")
field("uint64", "atomic.compare", "Compare value")
field("uint8", "aeth.syndrome", "Syndrome", base.HEX)
field("uint24", "aeth.msn", "Message sequence number")
field("uint64", "atomic.original", "Value before the operation")
field("uint32", "immediate", "Immediate data", base.HEX)
field("uint32", "invalidate", "Remote key to invalidate", base.HEX)
field("bytes", "payload", "Payload")
field("uint32", "icrc", "ICRC", base.HEX)
field("uint24", "ssn", "SEND sequence number")
field("uint32", "offset", "Octets of the message before this packet")
field("uint24", "trigger", "Triggering PSN")
field("uint16", "srnic.ssn", "SEND sequence number")
field("uint24", "srnic.psn_offset", "Packets of the message before this one")
field("uint24", "srnic.msn", "Message sequence number of the request")
field("uint24", "srnic.echoed_psn", "PSN of the packet that drew this")
field("bool", "ndp.trimmed", "Trimmed")
field("bool", "ndp.first_window", "Of the first window")
field("bool", "ndp.drained", "Nothing more to send")
field("bool", "ndp.returned", "Returned to its sender")
field("uint24", "ndp.source_qp", "Sending QP")
field("uint32", "ndp.pull_counter", "Pull counter")
field("uint24", "ndp.expected_psn", "Next expected PSN")
field("uint8", "homa.type", "Packet type", base.HEX, HOMA_TYPES)
field("uint8", "homa.priority", "Priority asked for")
field("uint64", "homa.rpc", "RPC id", base.HEX)
field("bool", "homa.retransmit", "Sent again")
field("uint16", "homa.number", "Number among messages that consume a receive")
field("uint32", "homa.message_length", "Octets of the message")
field("uint32", "homa.offset", "Octets before this packet")
field("uint32", "homa.incoming", "Octets that go without a further grant")
field("bool", "homa.resend_all", "Send everything again")
field("uint32", "homa.granted", "Octets from the start that may be sent")
field("uint32", "homa.wanted", "First octet wanted")
field("uint32", "homa.wanted_length", "Octets wanted")
field("uint16", "homa.cutoffs_version", "Version of the cutoffs")
field("uint32", "homa.cutoff", "Longest message of a priority")
field("uint8", "homa.acked_count", "RPCs acknowledged besides")
field("uint64", "homa.acked", "RPC acknowledged", base.HEX)
field("uint32", "cc.sent", "Time sent (ns)")
field("uint32", "cc.echoed", "Time echoed (ns)")
field("uint8", "cc.hops", "Switches crossed")
field("uint16", "cc.path", "Path ID")
field("uint8", "cc.hop.rate", "Line rate", base.DEC, RATES)
field("uint24", "cc.hop.time", "Switch's clock (ns)")
field("uint32", "cc.hop.sent", "Octets sent")
field("uint32", "cc.hop.queue", "Octets queued")
field("uint32", "cc.word", "Word of the law", base.HEX)
rocinante.fields = fields

local short = ProtoExpert.new("rocinante.short",
  "Too short for its headers: are the preferences rocinante.layout and rocinante.cc those of this queue pair?",
  expert.group.MALFORMED, expert.severity.ERROR)
local unknown = ProtoExpert.new("rocinante.unknown", "No opcode of this layout", expert.group.PROTOCOL,
  expert.severity.WARN)
local preference = ProtoExpert.new("rocinante.preference", "A preference of rocinante is not understood",
  expert.group.UNDECODED, expert.severity.WARN)
rocinante.experts = { short, unknown, preference }

local STANDARD, IRN, SRNIC, NDP, HOMA, CC = 0, 1, 2, 3, 4, 5
local NAMES = { [STANDARD] = "standard", [IRN] = "irn", [SRNIC] = "srnic", [NDP] = "ndp", [HOMA] = "homa", [CC] = "cc" }
local NUMBERS = {}
for number = STANDARD, CC do NUMBERS[NAMES[number]] = number end
-- A text and no choice, for which Wireshark would take any other word without telling.
rocinante.prefs.layout = Pref.string("Layout", NAMES[STANDARD],
  "The header layout of queue pairs not named below: standard, irn, srnic, ndp, homa or cc")
rocinante.prefs.cc = Pref.string("CC header", "time", 'Parts of the CC header, such as "int,time,3"')
rocinante.prefs.qps = Pref.string("Queue pairs", "",
  'Layouts of single queue pairs, such as "0x11=irn; 0x12=cc(int,time,2)"')

-- The preferences, taken apart when they change.
local layout_of_all, cc_of_all, by_qpn = STANDARD, {}, {}
-- What is wrong with them.
local problems = {}

local function problem(text, ...) problems[#problems + 1] = string.format(text, ...) end

local function parts_of(text)
  local parts = { time = false, int = false, own = 0 }
  for part in text:gmatch("%w+") do
    if part == "time" or part == "int" then
      parts[part] = true
    else
      parts.own = tonumber(part) or 0
      if not part:match("^%d+$") then
        problem('rocinante.cc: "%s" is neither "time" nor "int" nor a number of words', part)
      end
    end
  end
  return parts
end

local function read_preferences()
  problems = {}
  cc_of_all, by_qpn = parts_of(rocinante.prefs.cc), {}
  layout_of_all = NUMBERS[rocinante.prefs.layout]
  if not layout_of_all then
    problem('rocinante.layout: there is no layout "%s"', rocinante.prefs.layout)
    layout_of_all = STANDARD
  end
  for entry in rocinante.prefs.qps:gmatch("[^;]+") do
    local qpn, name, parts = entry:match("^%s*(%w+)%s*=%s*(%a+)%s*(.*)$")
    if qpn and tonumber(qpn) and NUMBERS[name] then
      by_qpn[tonumber(qpn)] = { layout = NUMBERS[name], cc = parts_of(parts) }
    elseif entry:match("%S") then
      problem('rocinante.qps: "%s" is not like 0x11=irn or 0x12=cc(time,2)', entry:match("^%s*(.-)%s*$"))
    end
  end
end
rocinante.prefs_changed = read_preferences
read_preferences()

local function layout_of(qpn)
  local own = by_qpn[qpn]
  if own then return own.layout, own.cc end
  return layout_of_all, cc_of_all
end

local function permits(layout, opcode)
  if not OPCODES[opcode] then return false end
  if opcode <= 0xc0 then return true end
  if opcode == 0xc1 then return layout == NDP end
  if opcode >= 0xf8 then return layout == CC end
  return layout == HOMA
end

-- Goes through a packet from the left. `take` gives the next octets, or raises when there are none.
local Cursor = {}
Cursor.__index = Cursor

function Cursor:take(octets)
  if self.at + octets > self.stop then error(self, 0) end
  local range = self.tvb(self.at, octets)
  self.at = self.at + octets
  return range
end

function Cursor:add(tree, name, octets) return tree:add(f[name], self:take(octets)) end

-- A field of some bits of `range`, with a value computed from them where `factor` is given.
local function bits(tree, name, range, first, count, factor)
  local value = range:bitfield(first, count)
  if count == 1 then value = value ~= 0 end
  return tree:add(f[name], range, factor and value * factor or value)
end

local layout_words = {}

layout_words[IRN] = function(cursor, tree, opcode)
  if SENDS[opcode] or WRITES_WITH_IMMEDIATE[opcode] then
    bits(tree, "ssn", cursor:take(4), 8, 24)
  end
  if SENDS[opcode] then cursor:add(tree, "offset", 4) end
  if ACKNOWLEDGEMENTS[opcode] then bits(tree, "trigger", cursor:take(4), 8, 24) end
end

layout_words[SRNIC] = function(cursor, tree, opcode)
  if ATOMICS[opcode] or ATOMIC_RESULTS[opcode] then return end
  local both = cursor:take(8)
  tree:add(f["srnic.ssn"], both, both:bitfield(0, 8) * 256 + both:bitfield(32, 8))
  bits(tree, "srnic.psn_offset", both(0, 4), 8, 24)
  bits(tree, "srnic.msn", both(4, 4), 8, 24)
  if ACKNOWLEDGEMENTS[opcode] then bits(tree, "srnic.echoed_psn", cursor:take(4), 8, 24) end
end

layout_words[NDP] = function(cursor, tree, opcode)
  local flags = cursor:take(4)
  bits(tree, "ndp.trimmed", flags, 0, 1)
  bits(tree, "ndp.first_window", flags, 1, 1)
  bits(tree, "ndp.drained", flags, 2, 1)
  bits(tree, "ndp.returned", flags, 3, 1)
  if SENDS[opcode] or WRITES[opcode] or READ_RESPONSES[opcode] then bits(tree, "ndp.source_qp", flags, 8, 24) end
  if SENDS[opcode] or WRITES_WITH_IMMEDIATE[opcode] then
    bits(tree, "ssn", cursor:take(4), 8, 24)
  end
  if SENDS[opcode] then cursor:add(tree, "offset", 4) end
  if ACKNOWLEDGEMENTS[opcode] or opcode == 0xc1 then
    cursor:add(tree, "ndp.pull_counter", 4)
    bits(tree, "ndp.expected_psn", cursor:take(4), 8, 24)
  end
end

local homa_body = {}
homa_body[0x10] = function(cursor, tree, detail)
  bits(tree, "homa.number", detail, 0, 15)
  bits(tree, "homa.retransmit", detail, 15, 1)
  cursor:add(tree, "homa.message_length", 4)
  cursor:add(tree, "homa.offset", 4)
  cursor:add(tree, "homa.incoming", 4)
end
homa_body[0x11] = function(cursor, tree, detail)
  bits(tree, "homa.resend_all", detail, 15, 1)
  cursor:add(tree, "homa.granted", 4)
end
homa_body[0x12] = function(cursor, tree)
  cursor:add(tree, "homa.wanted", 4)
  cursor:add(tree, "homa.wanted_length", 4)
end
homa_body[0x15] = function(cursor, tree, detail)
  tree:add(f["homa.cutoffs_version"], detail)
  for priority = 0, 7 do
    cursor:add(tree, "homa.cutoff", 4):append_text(" (priority " .. priority .. ")")
  end
end
homa_body[0x18] = function(cursor, tree, detail)
  local count = detail(1, 1)
  tree:add(f["homa.acked_count"], count)
  for index = 1, 5 do
    local other = cursor:take(8)
    if index <= count:uint() then tree:add(f["homa.acked"], other) end
  end
end

layout_words[HOMA] = function(cursor, tree, opcode)
  if ACKNOWLEDGEMENTS[opcode] or ATOMIC_RESULTS[opcode] then return end
  local packet_type = cursor:take(1)
  tree:add(f["homa.type"], packet_type)
  bits(tree, "homa.priority", cursor:take(1), 5, 3)
  local detail = cursor:take(2)
  cursor:add(tree, "homa.rpc", 8)
  local body = homa_body[packet_type:uint()]
  if body then body(cursor, tree, detail) end
end

layout_words[CC] = function(cursor, tree, _, cc)
  if cc.int then
    local hops = cursor:take(40)
    local count = cursor:take(4)
    bits(tree, "cc.hops", count(0, 2), 0, 4)
    bits(tree, "cc.path", count(0, 2), 4, 12)
    for hop = 0, math.min(count(0, 2):bitfield(0, 4), 5) - 1 do
      local range = hops(8 * hop, 8)
      local branch = tree:add(range, "Hop " .. hop + 1)
      bits(branch, "cc.hop.rate", range, 0, 3)
      bits(branch, "cc.hop.time", range, 3, 24)
      bits(branch, "cc.hop.sent", range, 27, 20, 128)
      bits(branch, "cc.hop.queue", range, 47, 17, 80)
    end
  end
  if cc.time then
    cursor:add(tree, "cc.sent", 4)
    cursor:add(tree, "cc.echoed", 4)
  end
  for _ = 1, cc.own do cursor:add(tree, "cc.word", 4) end
end

local function extension_headers(cursor, tree, opcode, layout)
  local short_form = layout == SRNIC and WRITES[opcode] and not RETHS[opcode]
  local each_write = layout == IRN or layout == NDP or layout == HOMA
  if RETHS[opcode] or short_form or (each_write and WRITES[opcode]) then
    cursor:add(tree, "reth.va", 8)
    cursor:add(tree, "reth.rkey", 4)
    if not short_form then cursor:add(tree, "reth.length", 4) end
  end
  if ATOMICS[opcode] then
    cursor:add(tree, "atomic.va", 8)
    cursor:add(tree, "atomic.rkey", 4)
    cursor:add(tree, "atomic.swap_or_add", 8)
    cursor:add(tree, "atomic.compare", 8)
  end
  if AETHS[opcode] then
    cursor:add(tree, "aeth.syndrome", 1)
    cursor:add(tree, "aeth.msn", 3)
  end
  if ATOMIC_RESULTS[opcode] then cursor:add(tree, "atomic.original", 8) end
  if IMMEDIATES[opcode] then cursor:add(tree, "immediate", 4) end
  if INVALIDATES[opcode] then cursor:add(tree, "invalidate", 4) end
end

local function base_header(cursor, tree)
  local opcode = cursor:take(1)
  tree:add(f["opcode"], opcode)
  local flags = cursor:take(1)
  bits(tree, "solicited", flags, 0, 1)
  local pad = flags:bitfield(2, 2)
  bits(tree, "pad", flags, 2, 2)
  cursor:add(tree, "pkey", 2)
  local notices = cursor:take(1)
  bits(tree, "fecn", notices, 0, 1)
  bits(tree, "becn", notices, 1, 1)
  cursor:add(tree, "qpn", 3)
  bits(tree, "ack_request", cursor:take(1), 0, 1)
  cursor:add(tree, "psn", 3)
  return pad
end

-- What a GRANT or RESEND is about, for the line of the packet.
local function homa_range(tvb, opcode)
  if opcode == 0xd1 then return string.format(", up to octet %d granted", tvb(24, 4):uint()) end
  if opcode == 0xd2 then return string.format(", %d octets from %d on wanted", tvb(28, 4):uint(), tvb(24, 4):uint()) end
  return ""
end

-- Wireshark's own dissector of the port.
local ports = DissectorTable.get("udp.port")
local standard = ports:get_dissector(4791)

function rocinante.dissector(tvb, pinfo, tree)
  for _, text in ipairs(problems) do tree:add(rocinante, tvb(0, 0)):add_proto_expert_info(preference, text) end
  local layout, cc, opcode = STANDARD, nil, nil
  if tvb:len() >= 16 then
    opcode = tvb(0, 1):uint()
    layout, cc = layout_of(tvb(5, 3):uint())
  end
  -- Datagrams and notifications are alike in every layout.
  local ours = opcode and (opcode < 0x20 or opcode >= 0xc0)
  if layout == STANDARD or not ours then
    local taken = standard and standard:call(tvb, pinfo, tree) or 0
    -- Wireshark has had no name for it for long.
    if opcode == 0x81 then pinfo.cols.info = string.format("CNP, QP 0x%06x", tvb(5, 3):uint()) end
    return taken
  end
  local name = OPCODES[opcode] or string.format("opcode 0x%02x", opcode)
  pinfo.cols.protocol = "RoCI"
  pinfo.cols.info = string.format("%s, QP 0x%06x, PSN %d", name, tvb(5, 3):uint(), tvb(9, 3):uint())
  local branch = tree:add(rocinante, tvb(), "Rocinante, layout " .. NAMES[layout] .. ", " .. name)
  branch:add(f["layout"], tvb(0, 0), NAMES[layout]):set_generated()
  local cursor = setmetatable({ tvb = tvb, at = 0, stop = tvb:len() - 4 }, Cursor)
  local pad = base_header(cursor, branch)
  if not permits(layout, opcode) then
    branch:add_proto_expert_info(unknown)
    return tvb:len()
  end
  local whole, raised = pcall(function()
    layout_words[layout](cursor, branch, opcode, cc)
    extension_headers(cursor, branch, opcode, layout)
  end)
  if not whole then
    if raised ~= cursor then error(raised, 0) end
    branch:add_proto_expert_info(short)
    return tvb:len()
  end
  if layout == HOMA then pinfo.cols.info:append(homa_range(tvb, opcode)) end
  local payload = cursor.stop - cursor.at - pad
  if payload > 0 then branch:add(f["payload"], tvb(cursor.at, payload)) end
  branch:add_le(f["icrc"], tvb(cursor.stop, 4))
  return tvb:len()
end

ports:add(4791, rocinante)
