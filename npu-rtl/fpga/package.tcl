# SPDX-License-Identifier: Apache-2.0
# package.tcl: npu_core as a kernel object (npu.xo) for the vendor's linker, by Vivado:
#
#   vivado -mode batch -source npu-rtl/fpga/package.tcl -tclargs REGS_PKG.sv PART OUT [R C S N]
#
# REGS_PKG.sv: npu_regs_pkg.sv as the build generates it; PART: the card's; OUT: a folder that is
# made, in which npu.xo will be; R C S N: the shape, 16 16 4 8 unless given.  Written after the
# vendor's documents (UG835, UG1118, UG1393) and held against them by tests/rtl/package_check.tcl; the
# vendor's tools have not run it.
if {$argc != 3 && $argc != 7} {
	puts stderr "usage: package.tcl REGS_PKG.sv PART OUT \[R C S N\]"
	exit 2
}
lassign $argv regs part out
lassign [expr {$argc == 7 ? [lrange $argv 3 6] : {16 16 4 8}}] R C S N

set here [file dirname [file normalize [info script]]]
set rtl [file dirname $here]
set vlnv [list hal kernel npu 1.0]

# Packages first, then a module a file; of two npu_clock_gate the one that is here.
set packages [list [file normalize $regs]]
lappend packages {*}[lsort [glob $rtl/*_pkg.sv]] $rtl/npu_hash.sv $here/npu_kernel_pkg.sv
set modules {}
foreach file [lsort [concat [glob $rtl/*.sv] [glob $here/*.sv]]] {
	if {$file ni $packages && $file ne "$rtl/npu_clock_gate.sv"} {
		lappend modules $file
	}
}

create_project -force npu $out/project -part $part
add_files -norecurse [concat $packages $modules]
set_property file_type SystemVerilog [get_files *.sv]
set_property top npu [current_fileset]
set_property generic "R=$R C=$C S=$S N=$N" [current_fileset]
update_compile_order -fileset sources_1

ipx::package_project -root_dir $out/ip -vendor [lindex $vlnv 0] -library [lindex $vlnv 1] \
	-taxonomy /KernelIP -import_files -force
set core [ipx::current_core]
set_property name [lindex $vlnv 2] $core
set_property version [lindex $vlnv 3] $core
foreach {name value} [list R $R C $C S $S N $N] {
	set_property value $value [ipx::get_user_parameters $name -of_objects $core]
	set_property value $value [ipx::get_hdl_parameters $name -of_objects $core]
}
ipx::associate_bus_interfaces -busif m_axi_gmem -clock ap_clk $core
ipx::associate_bus_interfaces -busif s_axi_control -clock ap_clk $core
set_property sdx_kernel true $core
set_property sdx_kernel_type rtl $core
set_property vitis_drc {ctrl_protocol ap_ctrl_hs} $core
set_property ipi_drc {ignore_freq_hz true} $core
ipx::create_xgui_files $core
ipx::update_checksums $core
ipx::check_integrity -kernel -xrt $core
ipx::save_core $core

package_xo -force -xo_path $out/npu.xo -kernel_name npu -ip_directory $out/ip \
	-kernel_xml $here/kernel.xml
