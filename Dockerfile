# A static program in an empty image, run by a user without privileges. The
# command is engine unless another one is given; compose.yaml also runs kb.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags=-s -o /root/knowhow ./cmd/knowhow \
 && mkdir -p /image/data /image/tmp /image/etc/ssl/certs \
 && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
 && mv /root/knowhow /image/ \
 && chmod 1777 /image/tmp \
 && chown 65532:65532 /image/data

FROM scratch
COPY --from=build /image /
USER 65532:65532
ENV KB_DATA_DIR=/data KB_ENGINE_ADDR=0.0.0.0:8000 KB_MCP_ADDR=0.0.0.0:8765
VOLUME /data
EXPOSE 8000 8765
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/knowhow", "health", "http://127.0.0.1:8000"]
ENTRYPOINT ["/knowhow"]
CMD ["engine"]
