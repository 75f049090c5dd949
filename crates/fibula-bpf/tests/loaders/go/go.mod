module loader

go 1.22

require github.com/cilium/ebpf v0.16.0
