# A static program in an empty image, run by a user without privileges. The
# command is serve unless another one is given: see compose.yaml, and
# compose.engine.yaml for the commands engine and kb.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags=-s -o /image/knowhow ./cmd/knowhow \
 && mkdir -p /image/data /image/tmp /image/etc/ssl/certs \
 && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
 && chmod 1777 /image/tmp \
 && chown 65532:65532 /image/data

FROM scratch
LABEL org.opencontainers.image.title=knowhow \
      org.opencontainers.image.description="Gives AI agents access to an organisation's documents through MCP" \
      org.opencontainers.image.source=https://github.com/knowhow-mcp/knowhow \
      org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /image /
USER 65532:65532
ENV KNOWHOW_DATA=/data KB_ENGINE_ADDR=0.0.0.0:8000 KB_MCP_ADDR=0.0.0.0:8765
VOLUME /data
EXPOSE 7411 8000 8765
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/knowhow", "health", "http://127.0.0.1:7411"]
ENTRYPOINT ["/knowhow"]
CMD ["serve", "--addr", "0.0.0.0:7411"]
