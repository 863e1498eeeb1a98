# What a machine with Linux or Android says of itself: NAME, a tab and a value in each line. The lines of a file have its
# path as their name. What is not there, or may not be read, prints nothing. For any POSIX shell: dash, busybox, mksh.
#
# $1  the folder that is installed into, below the home where it begins with ~; the disk that it is on counts
# $2  "twice": say what each process has used now and a second later
# $3  put before each path that is read, for trees of files in tests
folder=$1 how=$2 root=$3
tab=$(printf '\t')
exec 2>/dev/null
case $folder in "~" | "~/"*) folder=$HOME${folder#"~"} ;; esac

say() {
  [ -z "$2" ] || printf '%s\t%s\n' "$1" "$2"
}

show() {
  for file in "$@"; do
    [ -f "$file" ] || continue
    while IFS= read -r line || [ -n "$line" ]; do
      printf '%s\t%s\n' "${file#"$root"}" "$line"
    done <"$file"
  done
}

# Strings that end with NUL, one after the other.
show_strings() {
  for file in "$@"; do
    [ -f "$file" ] && tr '\0' '\n' <"$file" | sed "s|^|${file#"$root"}$tab|"
  done
}

said_by() {
  name=$1
  shift
  command -v "$1" >/dev/null && "$@" </dev/null | sed "s|^|$name$tab|"
}

processes() {
  show "$root/proc/stat" | grep "stat${tab}cpu " | sed "s|^[^$tab]*|cpu_ticks$1|"
  cat "$root"/proc/[0-9]*/stat | sed "s|^|process_ticks$1$tab|"
}

say survey 1
say kernel "$(uname -s) $(uname -r)"
say machine "$(uname -m)"
say hostname "$(uname -n)"
say user "$(id -un)"
say uid "$(id -u)"
say home "$HOME"
say time_s "$(date +%s)"
say page_bytes "$(getconf PAGESIZE)"
say ticks_per_s "$(getconf CLK_TCK)"

# Programs of a bundle need a C library that is new enough; without getconf the library itself says what it is.
libc=$(getconf GNU_LIBC_VERSION)
# Who has glibc may have musl as well, as Debian's package musl.
for file in "$root"/lib/libc.so.6 "$root"/lib64/libc.so.6 "$root"/lib/*/libc.so.6; do
  [ -n "$libc" ] || [ ! -x "$file" ] || libc=$("$file" | sed -n '1s/.*version \([0-9.]*[0-9]\).*/glibc \1/p')
done
for file in "$root"/lib/ld-musl-*.so.1; do
  [ -n "$libc" ] || [ ! -e "$file" ] || libc=musl
done
say libc "$libc"

there=$folder
while [ -n "$there" ] && [ ! -d "$there" ]; do there=${there%/*}; done
df -Pk "${there:-/}" | tail -n 1 | sed "s|^|disk$tab|"

case $how in twice)
  processes 1
  sleep 1
  processes 2
  ;;
esac

show "$root"/proc/meminfo "$root"/proc/cpuinfo "$root"/proc/loadavg "$root"/proc/swaps "$root"/proc/uptime
show "$root"/etc/os-release "$root"/sys/devices/virtual/dmi/id/sys_vendor "$root"/sys/devices/virtual/dmi/id/product_name
show_strings "$root"/proc/device-tree/model "$root"/proc/device-tree/compatible

for cpus in "$root"/sys/devices/system/cpu; do
  show "$cpus"/possible "$cpus"/online "$cpus"/cpu*/cpu_capacity "$cpus"/cpufreq/boost "$cpus"/intel_pstate/no_turbo
  show "$cpus"/cpu*/thermal_throttle/core_throttle_count
  for policy in "$cpus"/cpufreq/policy*; do
    for name in related_cpus affected_cpus cpuinfo_min_freq cpuinfo_max_freq scaling_min_freq scaling_max_freq \
      scaling_cur_freq scaling_governor scaling_available_governors scaling_driver; do
      show "$policy/$name"
    done
    [ -w "$policy/scaling_governor" ] && say writable "${policy#"$root"}/scaling_governor"
  done
done

for gpu in "$root"/sys/class/devfreq/*; do
  show "$gpu"/name "$gpu"/governor "$gpu"/available_governors "$gpu"/cur_freq "$gpu"/min_freq "$gpu"/max_freq
  [ -w "$gpu/governor" ] && say writable "${gpu#"$root"}/governor"
done
show "$root"/sys/class/kgsl/kgsl-3d0/gpu_model "$root"/sys/class/kgsl/kgsl-3d0/max_gpuclk

for zone in "$root"/sys/class/thermal/thermal_zone*; do
  show "$zone"/type "$zone"/temp "$zone"/trip_point_*_type "$zone"/trip_point_*_temp
done
for cooler in "$root"/sys/class/thermal/cooling_device*; do
  show "$cooler"/type "$cooler"/cur_state "$cooler"/max_state
done
for sensor in "$root"/sys/class/hwmon/hwmon*; do
  show "$sensor"/name "$sensor"/power*_input "$sensor"/power*_average "$sensor"/power*_label
  show "$sensor"/in*_input "$sensor"/in*_label "$sensor"/curr*_input "$sensor"/curr*_label
done
for counter in "$root"/sys/class/powercap/*; do
  show "$counter"/name "$counter"/energy_uj
done
for supply in "$root"/sys/class/power_supply/*; do
  show "$supply"/type "$supply"/scope "$supply"/status "$supply"/capacity "$supply"/online
done

for name in ro.product.manufacturer ro.product.model ro.soc.manufacturer ro.soc.model ro.board.platform \
  ro.build.version.release; do
  said_by "$name" getprop "$name"
done
said_by battery dumpsys -t 5 battery
said_by thermal_status dumpsys -t 5 thermalservice | grep 'Thermal Status'
said_by throttled vcgencmd get_throttled
said_by clock_synchronised timedatectl show -p NTPSynchronized --value
said_by virtual systemd-detect-virt
said_by opencl clinfo -l

# OpenCL's loader and whether it reads layers; the libraries that it is told to load, and which of them are there.
folders="/usr/lib /usr/lib64 /lib64 /usr/local/lib /vendor/lib64 /system/vendor/lib64 /vendor/lib $PREFIX/lib"
for folder in "$root"/usr/lib/*-linux-* $folders; do
  folder=$root${folder#"$root"}
  for file in "$folder"/libOpenCL.so.1 "$folder"/libOpenCL.so; do
    [ -f "$file" ] || continue
    say opencl_loader "${file#"$root"}"
    grep -q OPENCL_LAYERS "$file" && say opencl_layers "${file#"$root"}"
    break
  done
done
for icd in "$root"/etc/OpenCL/vendors/*.icd; do
  show "$icd"
  [ -f "$icd" ] && while IFS= read -r library || [ -n "$library" ]; do
    for folder in "" "$root"/usr/lib/*-linux-* $folders; do
      case $library in /*) file=$root$library ;; *) file=$root${folder#"$root"}/$library ;; esac
      [ -f "$file" ] && say opencl_driver "$library" && break
    done
  done <"$icd"
done
exit 0
