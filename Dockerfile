# An image with the program and the certificates of public authorities. See docs/guide/server.md.
FROM golang:1.26.8@sha256:6c2a5538f964f1c82f97ad14988bf05de100d922d159d0e398b54c7b0ca0c6c9 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# Of a release, such as v1.2.3. The other variables of a release have no use here: an image is not updated from inside.
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X raddle.dev/internal/base/release.Version=$VERSION" -o /out/raddle ./cmd/raddle && mkdir -p /out/state /out/config /out/work /out/tmp && printf 'image\nbuild or pull a newer image\n' >/out/installed-by

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/raddle /raddle
COPY --from=build /out/installed-by /lib/raddle/installed-by
COPY --from=build --chown=65532:65532 /out/state /state
COPY --from=build --chown=65532:65532 /out/config /config
COPY --from=build --chown=65532:65532 /out/work /work
COPY --from=build --chown=65532:65532 /out/tmp /tmp
USER 65532:65532
ENV HOME=/state XDG_STATE_HOME=/state XDG_CONFIG_HOME=/config
WORKDIR /work
VOLUME /state
EXPOSE 7777
ENTRYPOINT ["/raddle"]
CMD ["serve", "--listen", "0.0.0.0:7777", "--insecure-listen"]
