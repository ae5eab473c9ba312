package cos

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/rc4"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"fmt"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// A crypt decrypts a file whose user password is empty. Everyone may read such
// a file; only printing or changing it requires the other password (ISO
// 32000-1, 7.6; ISO 32000-2, 7.6 for AES-256).
type crypt struct {
	key           []byte
	strings       method
	streams       method
	plainMetadata bool
}

// A method is the encryption of strings or streams.
type method uint8

const (
	methodNone method = iota
	methodRC4
	methodAES128
	methodAES256
)

// padding replaces an empty password (ISO 32000-1, algorithm 2).
var padding = []byte("\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08" +
	"\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A")

// ErrLocked is the error for a file that requires a password.
var ErrLocked = fmt.Errorf("PDF document that opens with a password only; store a copy without the password: %w",
	errkind.Unsupported)

// decrypt prepares the key. Its errors are of kind Unsupported.
func (f *File) decrypt() error {
	d := f.Dict(f.trailer["Encrypt"])
	v, _ := Integer(f.Resolve(d["V"]))
	r, _ := Integer(f.Resolve(d["R"]))
	if f.Name(d["Filter"]) != "Standard" || v == 3 || v < 1 || v > 5 || r < 2 || r > 6 {
		return fmt.Errorf("PDF document with an encryption that is not known; store a copy without it: %w",
			errkind.Unsupported)
	}
	c := &crypt{strings: methodRC4, streams: methodRC4}
	if v >= 4 {
		c.strings, c.streams = f.cryptMethod(d, "StrF"), f.cryptMethod(d, "StmF")
	}
	if b, ok := f.Resolve(d["EncryptMetadata"]).(bool); ok && !b && v >= 4 {
		c.plainMetadata = true
	}
	if r >= 5 {
		c.key = aes256Key(f.Text(d["U"]), f.Text(d["UE"]), r)
	} else {
		length := 5
		if r >= 3 {
			length = int(f.Number(d["Length"], 128)) / 8
			if v == 4 {
				length = 16
			}
		}
		c.key = f.rc4Key(d, r, max(5, min(length, 16)), c.plainMetadata)
	}
	if c.key == nil {
		return ErrLocked
	}
	f.crypt = c
	return nil
}

// cryptMethod looks up a crypt filter.
func (f *File) cryptMethod(d Dict, which Name) method {
	filter := f.Name(d[which])
	switch f.Name(f.Dict(f.Dict(d["CF"])[filter])["CFM"]) {
	case "V2":
		return methodRC4
	case "AESV2":
		return methodAES128
	case "AESV3":
		return methodAES256
	}
	return methodNone
}

// rc4Key computes the key for the empty password and checks it (algorithms 2, 4
// and 5). It returns nil if the password is not empty.
func (f *File) rc4Key(d Dict, r, length int, plainMetadata bool) []byte {
	owner, user := f.Text(d["O"]), f.Text(d["U"])
	p, _ := number(f.Resolve(d["P"]))
	var id string
	if ids := f.Array(f.trailer["ID"]); len(ids) > 0 {
		id = f.Text(ids[0])
		id = id[:min(len(id), 1<<20)] // 16 bytes in practice
	}
	h := md5.New()
	h.Write(padding)
	h.Write([]byte(owner[:min(len(owner), 32)]))
	h.Write(binary.LittleEndian.AppendUint32(nil, uint32(int64(p))))
	h.Write([]byte(id))
	if r >= 4 && plainMetadata {
		h.Write([]byte{255, 255, 255, 255})
	}
	key := h.Sum(nil)
	check := bytes.Clone(padding)
	if r >= 3 {
		for range 50 {
			sum := md5.Sum(key[:length])
			key = sum[:]
		}
		sum := md5.Sum([]byte(string(padding) + id))
		check = sum[:]
	}
	key = key[:length]
	check = xorRC4(key, check, f.Budget)
	for i := 1; r >= 3 && i <= 19; i++ {
		k := bytes.Clone(key)
		for j := range k {
			k[j] ^= byte(i)
		}
		check = xorRC4(k, check, f.Budget)
	}
	if len(user) < 16 || len(check) < 16 || !bytes.Equal(check[:16], []byte(user[:16])) {
		return nil
	}
	return key
}

func xorRC4(key, data []byte, b *Budget) []byte {
	out := make([]byte, len(data))
	c, err := rc4.NewCipher(key)
	for at := 0; err == nil && at < len(out); at += checkEvery {
		end := min(at+checkEvery, len(out))
		if !b.Spend(end - at) {
			return nil
		}
		c.XORKeyStream(out[at:end], data[at:end])
	}
	return out
}

// aes256Key computes the key for the empty password and checks it (ISO 32000-2,
// algorithm 2.A). It returns nil if the password is not empty.
func aes256Key(u, ue string, r int) []byte {
	if len(u) < 48 || len(ue) < 32 {
		return nil
	}
	hash := func(salt string) []byte {
		if r == 5 {
			sum := sha256.Sum256([]byte(salt))
			return sum[:]
		}
		return hash2B([]byte(salt))
	}
	if !bytes.Equal(hash(u[32:40]), []byte(u[:32])) {
		return nil
	}
	block, err := aes.NewCipher(hash(u[40:48]))
	if err != nil {
		return nil
	}
	key := make([]byte, 32)
	cipher.NewCBCDecrypter(block, make([]byte, aes.BlockSize)).CryptBlocks(key, []byte(ue[:32]))
	return key
}

// hash2B implements algorithm 2.B of ISO 32000-2 for an empty password.
func hash2B(salt []byte) []byte {
	sum := sha256.Sum256(salt)
	k := sum[:]
	for round := 0; ; round++ {
		e := bytes.Repeat(k, 64)
		block, err := aes.NewCipher(k[:16])
		if err != nil {
			return nil
		}
		cipher.NewCBCEncrypter(block, k[16:32]).CryptBlocks(e, e)
		mod := 0
		for _, b := range e[:16] {
			mod += int(b)
		}
		switch mod % 3 {
		case 0:
			s := sha256.Sum256(e)
			k = s[:]
		case 1:
			s := sha512.Sum384(e)
			k = s[:]
		default:
			s := sha512.Sum512(e)
			k = s[:]
		}
		if round >= 63 && int(e[len(e)-1]) <= round-32 {
			return k[:32]
		}
	}
}

// stream decrypts the bytes of a stream.
func (c *crypt) stream(id Ref, data []byte, b *Budget) []byte {
	return c.decrypt(c.streams, id, data, b)
}

// text decrypts a string of the object id.
func (c *crypt) text(id Ref, s string, b *Budget) string {
	return string(c.decrypt(c.strings, id, []byte(s), b))
}

// decrypt implements algorithms 1 and 1.A. The memory of the result is taken
// from the budget.
func (c *crypt) decrypt(m method, id Ref, data []byte, b *Budget) []byte {
	if !b.Alloc(len(data)) {
		return nil
	}
	out := c.decrypted(m, id, data, b)
	b.Free(len(data) - len(out))
	return out
}

func (c *crypt) decrypted(m method, id Ref, data []byte, b *Budget) []byte {
	if m == methodNone {
		return data
	}
	key := c.key
	if m != methodAES256 {
		h := md5.New()
		h.Write(c.key)
		h.Write([]byte{byte(id.num), byte(id.num >> 8), byte(id.num >> 16), byte(id.gen), byte(id.gen >> 8)})
		if m == methodAES128 {
			h.Write([]byte("sAlT"))
		}
		key = h.Sum(nil)[:min(len(c.key)+5, 16)]
	}
	if m == methodRC4 {
		return xorRC4(key, data, b)
	}
	block, err := aes.NewCipher(key)
	if err != nil || len(data) < 2*aes.BlockSize {
		return nil
	}
	iv, body := data[:aes.BlockSize], data[aes.BlockSize:]
	out := make([]byte, len(body)/aes.BlockSize*aes.BlockSize)
	mode := cipher.NewCBCDecrypter(block, iv)
	for at := 0; at < len(out); at += checkEvery {
		end := min(at+checkEvery, len(out))
		if !b.Spend(end - at) {
			return nil
		}
		mode.CryptBlocks(out[at:end], body[at:end])
	}
	if n := int(out[len(out)-1]); n >= 1 && n <= aes.BlockSize {
		out = out[:len(out)-n]
	}
	return out
}
