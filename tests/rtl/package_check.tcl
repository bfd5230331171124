# SPDX-License-Identifier: Apache-2.0
# package_check.tcl NPU_RTL REGS_PKG.sv LINT...: runs npu-rtl/fpga/package.tcl in an interpreter
# whose commands of Vivado check what they are given - options and values as UG835, UG1118 and UG1393
# have them, objects that are there, their order - and do nothing.  What it would have packaged is
# held against the folders, and its files in its order, with its top and shape, are linted by
# Verilator.  Then the same with errors planted in the script, each of which has to be found.
#
# It shows that the script says what the vendor's documents ask for; the vendor's tools do not run.
set lint [lassign $argv rtl regs]
set script [file normalize $rtl/fpga/package.tcl]

# Each command's options, those with a value by "=", and how many operands it takes.
array set takes {
	create_project {-force -in_memory -ip -rtl_kernel -quiet -verbose -part= | 0 2}
	add_files {-norecurse -force_include -scan_for_includes -quiet -verbose -fileset= -copy_to=
		-of_objects= | 1 1}
	get_files {-regexp -nocase -all -quiet -verbose -of_objects= -filter= -compile_order= -used_in=
		| 0 1}
	current_fileset {-constrset -simset -srcset -quiet -verbose | 0 0}
	update_compile_order {-force_gui -quiet -verbose -fileset= | 0 0}
	set_property {-quiet -verbose | 3 3}
	ipx::package_project {-import_files -force -generated_files -archive_source_project= -quiet
		-verbose -root_dir= -vendor= -library= -taxonomy= -set_current= -module= | 0 0}
	ipx::current_core {-quiet -verbose | 0 0}
	ipx::get_user_parameters {-regexp -nocase -quiet -verbose -filter= -of_objects= | 0 1}
	ipx::get_hdl_parameters {-regexp -nocase -quiet -verbose -filter= -of_objects= | 0 1}
	ipx::associate_bus_interfaces {-clear -remove -quiet -verbose -busif= -clock= -reset= | 1 1}
	ipx::create_xgui_files {-quiet -verbose -logo_file= | 1 1}
	ipx::update_checksums {-quiet -verbose | 1 1}
	ipx::check_integrity {-kernel -xrt -quiet -verbose | 1 1}
	ipx::save_core {-quiet -verbose | 1 1}
	package_xo {-force -quiet -verbose -kernel_name= -kernel_xml= -output_kernel_xml= -design_xml=
		-ip_directory= -parent_ip_directory= -kernel_files= -kernel_xml_args= -kernel_xml_pipes=
		-kernel_xml_connections= -ctrl_protocol= -xo_path= | 0 0}
}
# What has to have been done before.
array set after {
	add_files create_project  get_files add_files  current_fileset create_project
	update_compile_order add_files  ipx::package_project update_compile_order
	ipx::current_core ipx::package_project  ipx::update_checksums ipx::create_xgui_files
	ipx::check_integrity ipx::update_checksums  ipx::save_core ipx::check_integrity
	package_xo ipx::save_core
}
# Properties of each kind of object, with the values that they may have.
array set properties {
	files {file_type SystemVerilog}
	fileset {top npu generic {[A-Z]=[0-9]*}}
	core {name * version {[0-9]*.[0-9]*} sdx_kernel {true} sdx_kernel_type {rtl}
		vitis_drc {ctrl_protocol ap_ctrl_hs} ipi_drc {ignore_freq_hz true}}
	parameter {value {[0-9]*}}
}

proc slurp {file} {
	set f [open $file]
	set text [read $f]
	close $f
	return $text
}

proc wrong {text} {
	lappend ::said $text
}

# The operands of a call; its options go to the array opt.
proc parse {name words} {
	upvar 1 opt opt
	lassign [split $::takes($name) |] options range
	lassign $range least most
	set operands {}
	array unset opt
	while {[llength $words]} {
		set words [lassign $words word]
		if {![regexp {^-[a-z]} $word]} {
			lappend operands $word
		} elseif {"$word=" in $options} {
			if {![llength $words]} { wrong "$name: $word without a value" }
			set words [lassign $words opt($word)]
		} elseif {$word in $options} {
			set opt($word) 1
		} else {
			wrong "$name has no option $word"
		}
	}
	set n [llength $operands]
	if {$n < $least || $n > $most} { wrong "$name: $n operands" }
	return $operands
}

proc option {name key} {
	upvar 1 opt opt
	if {![info exists opt($key)]} { wrong "$name without $key"; return "" }
	return $opt($key)
}

proc is_core {name object} {
	if {$object ne "CORE"} { wrong "$name of \"$object\", which is no core" }
}

# A call of the script's.
proc call {name args} {
	global did got top_pins
	set operands [parse $name $args]
	lassign $operands first
	if {[info exists ::after($name)] && $::after($name) ni $did} {
		wrong "$name before $::after($name)"
	}
	if {"package_xo" in $did} { wrong "$name behind package_xo" }
	if {"ipx::save_core" in $did && $name ne "package_xo"} { wrong "$name behind ipx::save_core" }
	if {"ipx::update_checksums" in $did && $name eq "set_property"} {
		wrong "$name behind ipx::update_checksums: [lindex $args 0]"
	}
	lappend did $name
	switch $name {
		create_project {
			set got(part) [option $name -part]
			lassign $operands - got(project)
		}
		add_files { set got(files) $first }
		get_files { return FILES }
		current_fileset { return FILESET }
		update_compile_order {
			if {[option $name -fileset] ne "sources_1"} { wrong "$name: $opt(-fileset)" }
		}
		set_property { property {*}$operands }
		ipx::package_project {
			foreach key {-root_dir -vendor -library -taxonomy} { set got($key) [option $name $key] }
			if {![info exists opt(-import_files)]} { wrong "$name does not copy the files" }
		}
		ipx::current_core { return CORE }
		ipx::get_user_parameters - ipx::get_hdl_parameters {
			is_core $name [option $name -of_objects]
			if {$first ni $::parameters} { wrong "$name: the module has no parameter $first" }
			return "PARAMETER [string range $name 9 11] $first"
		}
		ipx::associate_bus_interfaces {
			is_core $name $first
			set bus [option $name -busif]
			if {![regexp "\\m${bus}_awvalid\\M" $top_pins]} { wrong "$name: no bus $bus" }
			if {![regexp "\\m[option $name -clock]\\M" $top_pins]} { wrong "$name: no pin $opt(-clock)" }
			lappend got(buses) $bus
		}
		package_xo {
			foreach key {-xo_path -kernel_name -ip_directory -kernel_xml} {
				set got($key) [option $name $key]
			}
		}
		default {
			if {[string match ipx::* $name]} { is_core $name $first }
			foreach key [array names opt] { lappend got(checks) $key }
		}
	}
	return ""
}

proc property {name value object} {
	lassign [split $object] what kind parameter
	set what [string tolower $what]
	if {![info exists ::properties($what)]} { wrong "set_property $name of \"$object\""; return }
	set values [dict create {*}$::properties($what)]
	if {![dict exists $values $name]} { wrong "set_property: $what has no $name"; return }
	foreach word [expr {$name eq "generic" ? $value : [list $value]}] {
		if {![string match [dict get $values $name] $word]} { wrong "set_property $name: $word" }
	}
	if {$what eq "parameter"} { append name "_${kind}_$parameter" }
	set ::got($what.$name) $value
}

proc same {what is hasto} {
	if {$is ne $hasto} { wrong "$what: $is, not $hasto" }
}

# What is wrong with a script, in words: {words...}.
proc differences {text argv} {
	global rtl regs script
	set ::said {}
	set ::did {}
	array unset ::got
	array set ::got {files {} buses {} checks {} part {} -root_dir {} -xo_path {} -kernel_xml {}
		-kernel_name {} -ip_directory {} -vendor {} -library {} -taxonomy {} project {}}
	upvar #0 got got
	set v [interp create]
	foreach name [array names ::takes] {
		if {[string match ipx::* $name]} { $v eval {namespace eval ipx {}} }
		$v alias $name call $name
	}
	$v alias exit call_exit
	$v eval [list set argv $argv]
	$v eval [list set argc [llength $argv]]
	$v eval [list info script $script]
	if {[catch {$v eval $text} error]} { wrong "the script ends: $error" }
	interp delete $v
	if {[llength $::said]} { return $::said }

	lassign $argv - part out R C S N
	if {$N eq ""} { lassign {16 16 4 8} R C S N }
	set files [lsort [concat [glob $rtl/*.sv] [glob $rtl/fpga/*.sv] [list $regs]]]
	set files [lsearch -all -inline -not -exact $files $rtl/npu_clock_gate.sv]
	same files [lsort $got(files)] $files
	set module 0
	foreach file $got(files) {
		if {![file exists $file]} { wrong "no $file"; continue }
		set is_package [regexp -line {^package } [slurp $file]]
		if {$is_package && $module} { wrong "$file, a package, behind modules" }
		if {!$is_package} { set module 1 }
	}
	same part $got(part) $part
	same "the step" [lindex $::did end] package_xo
	foreach {name value} [list R $R C $C S $S N $N] {
		foreach kind {use hdl} {
			if {![info exists got(parameter.value_${kind}_$name)]} { wrong "$kind $name is not set" } \
				else { same "$kind $name" $got(parameter.value_${kind}_$name) $value }
		}
	}
	foreach {key value} [list fileset.generic "R=$R C=$C S=$S N=$N" fileset.top npu core.name npu \
			core.sdx_kernel true core.sdx_kernel_type rtl core.version 1.0 \
			core.vitis_drc {ctrl_protocol ap_ctrl_hs} files.file_type SystemVerilog \
			project $out/project -vendor hal -library kernel -taxonomy /KernelIP -root_dir $out/ip -ip_directory $out/ip \
			-xo_path $out/npu.xo -kernel_name npu -kernel_xml [file normalize $rtl/fpga/kernel.xml]] {
		if {![info exists got($key)]} { wrong "$key is not set" } else { same $key $got($key) $value }
	}
	same buses [lsort $got(buses)] [lsort -unique [regexp -all -inline {\m[sm]_axi_[a-z]+(?=_awvalid)} \
		$::top_pins]]
	same checks [lsort $got(checks)] {-kernel -xrt}
	return $::said
}

proc call_exit {{status 0}} {
	error "exit $status"
}

set top [slurp $rtl/fpga/npu.sv]
regexp {module npu\y.*?#\((.*?)\) \((.*?)\);} $top - parameters top_pins
set parameters [regexp -all -inline {\m[A-Z]\M(?= =)} $parameters]

set text [slurp $script]
set rc 0
foreach argv [list [list $regs xcu250-figd2104-2L-e out] [list $regs xcu250-figd2104-2L-e out 4 4 2 4]] {
	foreach said [differences $text $argv] { puts $said; set rc 1 }
}
if {!$rc} {
	foreach {name value} {R 4 C 4 S 2 N 4} { lappend shape -G$name=$value }
	set rc [catch {exec {*}$lint $rtl/npu_lint.vlt {*}$got(files) \
		--top-module $got(fileset.top) {*}$shape 2>@1} said]
	if {$rc} { puts $said }
}
foreach argv {{} {regs.sv part} {regs.sv part out 16 16 4}} {
	set said [differences [string map {"puts stderr" "list"} $text] $argv]
	if {$said ne {{the script ends: exit 2}}} { puts "arguments \"$argv\": $said"; set rc 1 }
}
set argv [list $regs xcu250-figd2104-2L-e out]
set missed {}
set planted {
	"-norecurse" "-recurse"  "-part $part" ""  "set_property top npu" "set_property top npu_core"
	"-taxonomy /KernelIP " ""  "-import_files " ""  "sdx_kernel_type rtl" "sdx_kernel_type hls"
	"ap_ctrl_hs" "ap_ctrl_chain"  "sdx_kernel true" "sdx_kernels true"  "-busif m_axi_gmem" "-busif m_axi_mem"
	"-clock ap_clk" "-clock ap_clock"  "-kernel -xrt" "-kernel"  "-kernel_xml $here/kernel.xml"
	"-kernel_xml $here/npu.xml"  "-xo_path" "-xo_file"  "-ip_directory $out/ip" "-ip_directory $out"
	"lappend modules $file" "set modules $file"  { && $file ne "$rtl/npu_clock_gate.sv"} ""
	"concat $packages $modules" "concat $modules $packages"  "R $R C $C" "R $R D $C"
	"ipx::update_checksums $core\n" ""  "ipx::save_core $core\n" ""  "update_compile_order -fileset sources_1\n" ""
	"ipx::current_core]" "ipx::current_cores]"  "create_project -force npu $out/project" "create_project -force npu"
	"{16 16 4 8}" "{16 16 8 4}"  "SystemVerilog" "Verilog"  "ipx::get_hdl_parameters $name" "ipx::get_hdl_parameters"
}
foreach {old new} $planted {
	set at [string first $old $text]
	if {$at < 0} { lappend missed "no \"$old\""; continue }
	set changed [string replace $text $at [expr {$at + [string length $old] - 1}] $new]
	if {![llength [differences $changed $argv]]} { lappend missed "\"$new\"" }
}
set n [expr {[llength $planted] / 2}]
if {!$rc} { puts "package.tcl is as the vendor's documents ask" }
puts "[expr {$n - [llength $missed]}] of $n planted errors found [join $missed {, }]"
exit [expr {$rc || [llength $missed]}]
