package fetch

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"
)

// maxAddresses is the maximum number of addresses of a name that are tried.
const maxAddresses = 8

// addressTimeout is the time limit for connecting to an address if there is another
// one.
const addressTimeout = 3 * time.Second

// A dialer connects only to hosts and addresses that its policy allows. It
// resolves names itself and connects to the addresses that it has checked, so a
// name server that gives another answer the next time (DNS rebinding) has no
// effect.
type dialer struct {
	policy   *policy
	resolver Resolver
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
}

var errNoAddress = errors.New("the name has no address")

// DialContext connects to a host and port that [policy.check] has accepted.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	h, err := parseHost(name)
	if err != nil {
		return nil, err
	}
	if err := d.policy.checkHost(h); err != nil {
		return nil, err
	}
	addrs, err := d.addresses(ctx, h)
	if err != nil {
		return nil, err
	}
	for i, a := range addrs {
		var conn net.Conn
		conn, err = d.try(ctx, network, net.JoinHostPort(a.String(), port), i == len(addrs)-1)
		if err == nil {
			return conn, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// addresses returns the permitted addresses of h, at least one.
func (d *dialer) addresses(ctx context.Context, h host) ([]netip.Addr, error) {
	if h.addr.IsValid() {
		return []netip.Addr{h.addr}, nil // already checked with the host
	}
	all, err := d.resolver.LookupNetIP(ctx, "ip", h.name)
	if err != nil {
		return nil, err
	}
	err = errNoAddress
	var ok []netip.Addr
	for _, a := range all {
		// A name may have both private and public addresses.
		if e := d.policy.checkAddr(h, a); e != nil {
			err = e
		} else if len(ok) < maxAddresses {
			ok = append(ok, a.Unmap())
		}
	}
	if len(ok) == 0 {
		return nil, err
	}
	return ok, nil
}

func (d *dialer) try(ctx context.Context, network, address string, last bool) (net.Conn, error) {
	if !last {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, addressTimeout)
		defer cancel()
	}
	return d.dial(ctx, network, address)
}
