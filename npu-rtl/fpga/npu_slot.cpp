/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npu_slot.cpp - npu_slot.h over one Verilated npu (fpga/npu.sv): one shape, one shared
 * object.  The host of its AXI4-Lite bus, the memory of its AXI4 bus, and in each cycle
 * the rules that it has to keep on both.
 *
 * NPU_ROWS, NPU_COLS, NPU_SLOTS, NPU_CHANNELS and NPU_TOP (the Verilated class) come from
 * the build.
 */
#include "npu_slot.h"

#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>
#include <vector>

#include "npu_kernel.h"
#include "verilated.h"

#define NPU_STR2(x)    #x
#define NPU_STR(x)     NPU_STR2(x)
#define NPU_CAT2(a, b) a##b
#define NPU_CAT(a, b)  NPU_CAT2(a, b)
#include NPU_STR(NPU_TOP.h)

namespace
{

constexpr uint32_t BEAT = 16, OKAY = 0, DECERR = 3;
constexpr uint64_t PATIENCE = 10000; /* cycles for an answer of the registers */

struct burst {
	uint32_t id, beats, done;
	uint8_t *at; /* nullptr: nothing is there */
};

/* What an address channel shows: valid, ID, address, length, size, burst, cache,
 * protection. */
using address = std::array<uint64_t, 8>;
/* What the data channel shows: valid, last, strobes, data. */
using data = std::array<uint32_t, 7>;

VerilatedContext *prepare(VerilatedContext *context)
{
	const char *seed = getenv("NPU_MODEL_SEED");

	Verilated::threadContextp(context);
	context->threads(1); /* else a pool, of as many as there are processors */
	context->randReset(2);
	context->randSeed(seed ? atoi(seed) : 1);
	return context;
}

} // namespace

struct npu_slot {
	VerilatedContext context;
	NPU_TOP top;
	npu_slot_memory_fn memory;
	void *user;
	uint64_t cycle = 0, state = 1;
	uint32_t of256 = 0;
	/* the AXI4 bus */
	std::vector<burst> reads, writes; /* addressed; all of their data came */
	std::deque<burst> owed;           /* addressed, data still to come */
	std::deque<data> early;           /* data that came before the address */
	address ar{}, aw{};               /* shown and not taken in the last cycle */
	data w{};
	bool running = false; /* since a run was started, until it was seen to be over */
	uint64_t bursts[2] = {}, beats[2] = {};
	uint64_t broken = 0;
	char text[160] = "";

	npu_slot(npu_slot_memory_fn fn, void *arg)
	    : top(prepare(&context), "npu"), memory(fn), user(arg)
	{
	}
	~npu_slot()
	{
		Verilated::threadContextp(&context); /* scopes leave this thread's */
		top.final();
	}
	npu_slot(const npu_slot &) = delete;
	npu_slot &operator=(const npu_slot &) = delete;
};

namespace
{

__attribute__((format(printf, 3, 4))) void expect(npu_slot *s, bool ok,
						  const char *format, ...)
{
	va_list args;

	if (ok || s->broken++)
		return;
	va_start(args, format);
	vsnprintf(s->text, sizeof(s->text), format, args);
	va_end(args);
}

/* The pin's name is a C signal's, so Verilator gives it another. */
bool line(const npu_slot *s)
{
	return s->top.__SYM__interrupt;
}

bool waits(npu_slot *s)
{
	uint64_t z = s->state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	return (z >> 40 & 255) < s->of256;
}

/* Whose turn it is to be answered: the oldest of any ID. */
size_t pick(npu_slot *s, const std::vector<burst> &from)
{
	size_t any, oldest = 0;

	if (!s->of256 || from.empty())
		return 0;
	waits(s);
	any = (s->state >> 20) % from.size();
	while (from[oldest].id != from[any].id)
		oldest++;
	return oldest;
}

/* ---- the rules ----------------------------------------------------------------------- */

void check_address(npu_slot *s, const char *name, const address &now, address &before,
		   bool taken)
{
	const uint64_t source = now[1] >> 3, first = now[2], beats = now[3] + 1;

	expect(s, !before[0] || now == before, "%s changes before it is taken", name);
	before = taken ? address{} : now;
	if (!now[0]) {
		before = {};
		return;
	}
	expect(s, s->running, "%s outside a run", name);
	expect(s, now[4] == 4 && now[5] == 1, "%s: size %u, burst %u", name,
	       (unsigned)now[4], (unsigned)now[5]);
	expect(s, first % BEAT == 0, "%s: address %#llx", name,
	       (unsigned long long)first);
	expect(s, first >> 12 == (first + beats * BEAT - 1) >> 12,
	       "%s: %u beats at %#llx cross 4 KiB", name, (unsigned)beats,
	       (unsigned long long)first);
	expect(s, first >> 6 == (first + beats * BEAT - 1) >> 6,
	       "%s: %u beats at %#llx leave a line", name, (unsigned)beats,
	       (unsigned long long)first);
	expect(s,
	       source <= NPU_CHANNELS &&
		       (now[1] & 7) < (source == NPU_CHANNELS ? 1u : NPU_SLOTS),
	       "%s: ID %#x", name, (unsigned)now[1]);
}

void check_data(npu_slot *s, const data &now, bool taken)
{
	expect(s, !s->w[0] || now == s->w, "W changes before it is taken");
	s->w = now[0] && !taken ? now : data{};
	expect(s, !now[0] || s->running, "W outside a run");
}

/* ---- a cycle -------------------------------------------------------------------------- */

burst begin(npu_slot *s, const address &a, int write)
{
	const uint32_t beats = static_cast<uint32_t>(a[3]) + 1;

	s->bursts[write]++;
	return {static_cast<uint32_t>(a[1]), beats, 0,
		static_cast<uint8_t *>(s->memory(s->user, a[2], beats * BEAT))};
}

/* Data belong to the addresses in their order. */
void settle_writes(npu_slot *s)
{
	while (!s->owed.empty() && !s->early.empty()) {
		burst &b = s->owed.front();
		const data beat = s->early.front();

		s->early.pop_front();
		expect(s, beat[1] == (b.done + 1 == b.beats), "WLAST at beat %u of %u",
		       b.done, b.beats);
		for (uint32_t i = 0; b.at && i < BEAT; i++)
			if (beat[2] >> i & 1)
				b.at[b.done * BEAT + i] = static_cast<uint8_t>(
					beat[3 + i / 4] >> i % 4 * 8);
		if (++b.done < b.beats)
			continue;
		s->writes.push_back(b);
		s->owed.pop_front();
	}
	expect(s, s->early.size() <= 256, "data without an address");
}

void show_read(npu_slot *s)
{
	const size_t i = pick(s, s->reads);

	s->top.m_axi_gmem_rvalid = !s->reads.empty() && !waits(s);
	if (!s->top.m_axi_gmem_rvalid)
		return;
	const burst b = s->reads[i];

	s->top.m_axi_gmem_rid = static_cast<uint8_t>(b.id);
	s->top.m_axi_gmem_rlast = b.done + 1 == b.beats;
	s->top.m_axi_gmem_rresp = b.at ? OKAY : DECERR;
	for (uint32_t word = 0; word < 4; word++) {
		uint32_t value = 0; /* with an error: a step that would do something */

		if (b.at)
			memcpy(&value, b.at + b.done * BEAT + 4 * word, 4);
		s->top.m_axi_gmem_rdata[word] = value;
	}
}

void show_written(npu_slot *s)
{
	const size_t i = pick(s, s->writes);

	s->top.m_axi_gmem_bvalid = !s->writes.empty() && !waits(s);
	if (!s->top.m_axi_gmem_bvalid)
		return;
	s->top.m_axi_gmem_bid = static_cast<uint8_t>(s->writes[i].id);
	s->top.m_axi_gmem_bresp = s->writes[i].at ? OKAY : DECERR;
}

size_t find(const std::vector<burst> &in, uint32_t id)
{
	size_t i = 0;

	while (in[i].id != id)
		i++;
	return i;
}

/* What was shown is the oldest of its ID. */
void end_read(npu_slot *s)
{
	const size_t i = find(s->reads, s->top.m_axi_gmem_rid);

	s->beats[0]++;
	if (++s->reads[i].done == s->reads[i].beats)
		s->reads.erase(s->reads.begin() + static_cast<long>(i));
}

void clock(npu_slot *s)
{
	NPU_TOP &t = s->top;
	bool r, b;

	t.ap_clk = 0;
	t.m_axi_gmem_arready = !waits(s);
	t.m_axi_gmem_awready = !waits(s);
	t.m_axi_gmem_wready = !waits(s);
	t.eval();

	const address ar = {t.m_axi_gmem_arvalid, t.m_axi_gmem_arid,
			    t.m_axi_gmem_araddr,  t.m_axi_gmem_arlen,
			    t.m_axi_gmem_arsize,  t.m_axi_gmem_arburst,
			    t.m_axi_gmem_arcache, t.m_axi_gmem_arprot};
	const address aw = {t.m_axi_gmem_awvalid, t.m_axi_gmem_awid,
			    t.m_axi_gmem_awaddr,  t.m_axi_gmem_awlen,
			    t.m_axi_gmem_awsize,  t.m_axi_gmem_awburst,
			    t.m_axi_gmem_awcache, t.m_axi_gmem_awprot};
	const data w = {t.m_axi_gmem_wvalid,   t.m_axi_gmem_wlast,
			t.m_axi_gmem_wstrb,    t.m_axi_gmem_wdata[0],
			t.m_axi_gmem_wdata[1], t.m_axi_gmem_wdata[2],
			t.m_axi_gmem_wdata[3]};

	check_address(s, "AR", ar, s->ar, t.m_axi_gmem_arready);
	check_address(s, "AW", aw, s->aw, t.m_axi_gmem_awready);
	check_data(s, w, t.m_axi_gmem_wready);
	r = t.m_axi_gmem_rvalid && t.m_axi_gmem_rready;
	b = t.m_axi_gmem_bvalid && t.m_axi_gmem_bready;
	t.ap_clk = 1;
	t.eval();
	s->cycle++;

	if (ar[0] && t.m_axi_gmem_arready)
		s->reads.push_back(begin(s, ar, 0));
	if (aw[0] && t.m_axi_gmem_awready)
		s->owed.push_back(begin(s, aw, 1));
	if (w[0] && t.m_axi_gmem_wready) {
		s->early.push_back(w);
		s->beats[1]++;
	}
	settle_writes(s);
	if (r)
		end_read(s);
	if (b)
		s->writes.erase(s->writes.begin() +
				static_cast<long>(find(s->writes, t.m_axi_gmem_bid)));
	/* an answer that is not taken stays as it is */
	if (r || !t.m_axi_gmem_rvalid)
		show_read(s);
	if (b || !t.m_axi_gmem_bvalid)
		show_written(s);
}

/* ---- registers ------------------------------------------------------------------------ */

uint32_t read(npu_slot *s, uint32_t offset)
{
	NPU_TOP &t = s->top;
	uint64_t limit = s->cycle + PATIENCE;
	uint32_t value;

	while (waits(s))
		clock(s);
	t.s_axi_control_arvalid = 1;
	t.s_axi_control_araddr = static_cast<uint16_t>(offset);
	t.s_axi_control_rready = 0;
	t.eval();
	expect(s, !t.s_axi_control_rvalid, "RVALID without a request");
	while (!t.s_axi_control_arready && s->cycle < limit)
		clock(s);
	clock(s);
	t.s_axi_control_arvalid = 0;
	while ((!t.s_axi_control_rvalid || waits(s)) && s->cycle < limit)
		clock(s);
	expect(s, t.s_axi_control_rvalid && t.s_axi_control_rresp == OKAY,
	       "register %#x: no answer, or an error", offset);
	value = t.s_axi_control_rdata;
	if (waits(s)) {
		clock(s);
		expect(s, t.s_axi_control_rvalid && t.s_axi_control_rdata == value,
		       "R changes before it is taken");
	}
	t.s_axi_control_rready = 1;
	clock(s);
	t.s_axi_control_rready = 0;
	t.eval();
	expect(s, !t.s_axi_control_rvalid, "two answers to one read");
	if (offset == NPU_KERNEL_AP_CTRL && value & NPU_KERNEL_AP_IDLE) {
		expect(s,
		       s->reads.empty() && s->writes.empty() && s->owed.empty() &&
			       s->early.empty() && !s->ar[0] && !s->aw[0] && !s->w[0],
		       "idle with something in flight");
		s->running = false;
	}
	return value;
}

void write(npu_slot *s, uint32_t offset, uint32_t value, uint32_t strobes)
{
	NPU_TOP &t = s->top;
	uint64_t limit = s->cycle + PATIENCE;
	bool address = false, data = false;

	if (offset == NPU_KERNEL_AP_CTRL && value & strobes & NPU_KERNEL_AP_START)
		s->running = true;
	t.s_axi_control_bready = 0;
	while ((!address || !data) && s->cycle < limit) {
		const bool a = !address && (t.s_axi_control_awvalid || !waits(s));
		const bool d = !data && (t.s_axi_control_wvalid || !waits(s));

		t.s_axi_control_awvalid = a;
		t.s_axi_control_awaddr = static_cast<uint16_t>(offset);
		t.s_axi_control_wvalid = d;
		t.s_axi_control_wdata = value;
		t.s_axi_control_wstrb = static_cast<uint8_t>(strobes);
		t.eval();
		expect(s, !t.s_axi_control_bvalid, "BVALID before address and data");
		address |= a && t.s_axi_control_awready;
		data |= d && t.s_axi_control_wready;
		clock(s);
	}
	t.s_axi_control_awvalid = 0;
	t.s_axi_control_wvalid = 0;
	while ((!t.s_axi_control_bvalid || waits(s)) && s->cycle < limit)
		clock(s);
	expect(s, t.s_axi_control_bvalid && t.s_axi_control_bresp == OKAY,
	       "register %#x: a write is not answered, or with an error", offset);
	t.s_axi_control_bready = 1;
	clock(s);
	t.s_axi_control_bready = 0;
	t.eval();
	expect(s, !t.s_axi_control_bvalid, "two answers to one write");
}

/* ---- the rest of the face ------------------------------------------------------------- */

npu_slot *create(npu_slot_memory_fn memory, void *user)
{
	npu_slot *s;

	try {
		s = new npu_slot(memory, user);
	} catch (const std::bad_alloc &) {
		return nullptr;
	}
	NPU_TOP &t = s->top;

	t.s_axi_control_awvalid = 0;
	t.s_axi_control_wvalid = 0;
	t.s_axi_control_arvalid = 0;
	t.s_axi_control_rready = 0;
	t.s_axi_control_bready = 0;
	t.m_axi_gmem_rvalid = 0;
	t.m_axi_gmem_bvalid = 0;
	t.ap_rst_n = 0;
	s->context.assertOn(false); /* nothing holds before the reset */
	for (int i = 0; i < 8; i++) {
		t.ap_clk = 0;
		t.eval();
		t.ap_clk = 1;
		t.eval();
	}
	expect(s,
	       !t.m_axi_gmem_arvalid && !t.m_axi_gmem_awvalid && !t.m_axi_gmem_wvalid &&
		       !t.s_axi_control_bvalid && !t.s_axi_control_rvalid && !line(s),
	       "a valid in reset");
	t.ap_rst_n = 1;
	clock(s); /* the reset input is registered */
	s->context.assertOn(true);
	return s;
}

void destroy(npu_slot *s)
{
	delete s;
	Verilated::threadContextp(Verilated::defaultContextp());
}

void lazy(npu_slot *s, uint32_t of256, uint64_t seed)
{
	s->of256 = of256;
	s->state = seed;
}

uint64_t run(npu_slot *s, uint64_t max_cycles)
{
	const uint64_t start = s->cycle;

	while (s->cycle - start < max_cycles && !line(s))
		clock(s);
	return s->cycle - start;
}

int interrupt(const npu_slot *s)
{
	return line(s);
}

uint64_t cycle(const npu_slot *s)
{
	return s->cycle;
}

uint64_t wrong(const npu_slot *s, const char **text)
{
	if (text)
		*text = s->text;
	return s->broken;
}

void traffic(const npu_slot *s, uint64_t bursts[2], uint64_t beats[2])
{
	memcpy(bursts, s->bursts, sizeof(s->bursts));
	memcpy(beats, s->beats, sizeof(s->beats));
}

const npu_slot_api api = {
	sizeof(npu_slot_api),
	NPU_SLOT_ABI,
	NPU_ROWS,
	NPU_COLS,
	NPU_SLOTS,
	NPU_CHANNELS,
	create,
	destroy,
	lazy,
	read,
	write,
	run,
	interrupt,
	cycle,
	wrong,
	traffic,
};

} // namespace

extern "C" __attribute__((visibility("default"))) const struct npu_slot_api *
npu_slot_entry(void)
{
	return &api;
}
