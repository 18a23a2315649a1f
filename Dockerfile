# The image of the scheduler: `docker build --tag krafla:0.1.0 .`
FROM rust:1.95-slim-bookworm AS build
WORKDIR /krafla
COPY . .
# What was compiled stays in caches of the builder, not in a layer.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/krafla/target \
    cargo build --profile dist --locked --package krafla \
    && cp target/dist/krafla /usr/local/bin/krafla

# It needs glibc and libgcc of the builder's Debian, or newer, and nothing else.
FROM debian:bookworm-slim
COPY LICENSE /usr/share/doc/krafla/LICENSE
COPY --from=build /usr/local/bin/krafla /usr/local/bin/krafla
# As Volcano's pods.
USER 1000:1000
# Arguments are flags of the scheduler. Other commands: `docker run --rm -i --entrypoint krafla krafla:0.1.0 check -`
ENTRYPOINT ["krafla", "schedule"]
