package child

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A Family is a child and all of its descendants, in a job object. The system
// ends them when the last handle of the job is closed, also when this program
// is killed.
type Family struct {
	job windows.Handle

	mu   sync.Mutex
	gone bool // the handle is closed
}

// A Guard is not needed with job objects.
type Guard struct{}

// Close does nothing.
func (g *Guard) Close() {}

// Command finds a command on the PATH of env, for running in dir, and returns
// it ready for [Start]. Batch files, as npm creates them, are run by cmd.exe.
// The error states what to do and is final.
func Command(name string, args []string, dir string, env []string) (*exec.Cmd, error) {
	file := find(name, dir, env)
	if file == "" {
		return nil, notFound(name)
	}
	cmd := &exec.Cmd{Path: file, Args: append([]string{name}, args...), Env: env, Dir: dir}
	switch strings.ToLower(filepath.Ext(file)) {
	case ".cmd", ".bat":
		shell := lookIn(env, "COMSPEC", strings.EqualFold)
		if shell == "" {
			shell = filepath.Join(lookIn(env, "SYSTEMROOT", strings.EqualFold), "System32", "cmd.exe")
		}
		cmd.Path = shell
		cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: batchLine(shell, file, args)}
	}
	return cmd, nil
}

// find returns the file of a command, or "" if there is none.
func find(name, dir string, env []string) string {
	extensions := filepath.SplitList(lookIn(env, "PATHEXT", strings.EqualFold))
	if len(extensions) == 0 {
		extensions = []string{".com", ".exe", ".bat", ".cmd"}
	}
	if filepath.Ext(name) != "" {
		extensions = append([]string{""}, extensions...)
	}
	folders := filepath.SplitList(lookIn(env, "PATH", strings.EqualFold))
	if strings.ContainsAny(name, `/\:`) {
		folders = []string{""}
	}
	for _, folder := range folders {
		file := filepath.Join(folder, name)
		if !filepath.IsAbs(file) {
			if folder != "" {
				continue // a relative folder depends on the working directory
			}
			file = filepath.Join(dir, file)
		}
		for _, ext := range extensions {
			if info, err := os.Stat(file + ext); err == nil && !info.IsDir() {
				return file + ext
			}
		}
	}
	return ""
}

// batchLine returns a command line on which cmd.exe passes each argument on
// unchanged: quoted as programs expect it, with a caret before every character
// that is special to cmd.exe. The batch files that npm creates for packages
// parse their arguments once more, so they get the carets twice.
func batchLine(shell, file string, args []string) string {
	carets := strings.NewReplacer(`(`, `^(`, `)`, `^)`, `[`, `^[`, `]`, `^]`, `%`, `^%`, `!`, `^!`, `^`, `^^`, `"`,
		`^"`,
		"`", "^`", `<`, `^<`, `>`, `^>`, `&`, `^&`, `|`, `^|`, `;`, `^;`, `,`, `^,`, ` `, `^ `, `*`, `^*`, `?`, `^?`)
	twice := strings.Contains(strings.ToLower(filepath.ToSlash(file)), "node_modules/.bin/")
	var b strings.Builder
	b.WriteString(carets.Replace(file))
	for _, arg := range args {
		// A line end would end the command. The space makes EscapeArg quote the
		// argument. It is removed again, before the quote.
		quoted := syscall.EscapeArg(" " + strings.NewReplacer("\r", " ", "\n", " ").Replace(arg))
		quoted = carets.Replace(`"` + quoted[2:])
		if twice {
			quoted = carets.Replace(quoted)
		}
		b.WriteString(" " + quoted)
	}
	return syscall.EscapeArg(shell) + ` /d /s /c "` + b.String() + `"`
}

// Start starts cmd in a new job object.
func Start(cmd *exec.Cmd, _ *Guard) (*Family, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return nil, err
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.HideWindow = true
	cmd.SysProcAttr.CreationFlags = windows.CREATE_NEW_PROCESS_GROUP
	if err := cmd.Start(); err != nil {
		_ = windows.CloseHandle(job)
		return nil, err
	}
	var assigned error
	err = cmd.Process.WithHandle(func(handle uintptr) {
		assigned = windows.AssignProcessToJobObject(job, windows.Handle(handle))
		if state, err := windows.WaitForSingleObject(windows.Handle(handle), 0); err == nil && state == windows.WAIT_OBJECT_0 {
			assigned = nil // a process that has ended joins no job; Reap returns how it ended
		}
	})
	if err == nil {
		err = assigned
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = windows.CloseHandle(job)
		return nil, err
	}
	return &Family{job: job}, nil
}

// Reap waits for the end of the child, ends the rest of the job, and returns
// how the child ended.
func (f *Family) Reap(cmd *exec.Cmd) string {
	_ = cmd.Wait() // the state contains the result
	f.Kill()
	f.mu.Lock()
	f.gone = true
	_ = windows.CloseHandle(f.job)
	f.mu.Unlock()
	if cmd.ProcessState == nil {
		return "in an unknown way"
	}
	return cmd.ProcessState.String()
}

// Terminate ends the job at once: there is no signal that requests it.
func (f *Family) Terminate() { f.Kill() }

// Kill ends all members of the job.
func (f *Family) Kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.gone {
		_ = windows.TerminateJobObject(f.job, 1) // an error means that the job is empty
	}
}
