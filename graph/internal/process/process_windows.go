package process

import (
	"encoding/hex"
	"hash/fnv"
	"strconv"
	"syscall"
	"unsafe"
)

// hostID identifies the machine. Process numbers are used again after a boot, but
// never together with the time at which the process started.
func hostID() string {
	path, err := syscall.UTF16PtrFromString(`SOFTWARE\Microsoft\Cryptography`)
	if err != nil {
		return ""
	}
	const read64 = syscall.KEY_READ | 0x0100 // KEY_WOW64_64KEY
	var key syscall.Handle
	if syscall.RegOpenKeyEx(syscall.HKEY_LOCAL_MACHINE, path, 0, read64, &key) != nil {
		return ""
	}
	defer syscall.RegCloseKey(key)
	name, err := syscall.UTF16PtrFromString("MachineGuid")
	if err != nil {
		return ""
	}
	var text [128]byte
	n, typ := uint32(len(text)), uint32(0)
	if syscall.RegQueryValueEx(key, name, nil, &typ, (*byte)(unsafe.Pointer(&text[0])), &n) != nil {
		return ""
	}
	h := fnv.New128a()
	_, _ = h.Write(text[:n]) // a hash never fails
	return hex.EncodeToString(h.Sum(nil))
}

// processStart returns when a process started ("": unknown), and whether it exists.
func processStart(pid int) (start string, exists bool) {
	const query = 0x1000 // PROCESS_QUERY_LIMITED_INFORMATION
	h, err := syscall.OpenProcess(query, false, uint32(pid))
	if err != nil {
		const none = syscall.Errno(87) // ERROR_INVALID_PARAMETER: no process has this number
		return "", err != none
	}
	defer syscall.CloseHandle(h)
	var made, ended, kernel, user syscall.Filetime
	if syscall.GetProcessTimes(h, &made, &ended, &kernel, &user) != nil {
		return "", true
	}
	const active = 259 // STILL_ACTIVE
	var code uint32
	if syscall.GetExitCodeProcess(h, &code) == nil && code != active {
		return "", false
	}
	return strconv.FormatInt(made.Nanoseconds(), 36), true
}
