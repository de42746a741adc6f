# A controller that scripts/build_controllers has built; the context is its folder.
FROM scratch
COPY manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
