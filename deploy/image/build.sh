#!/bin/sh
# Builds a target of the Dockerfile so that the same commit always gives the same digest, with the same version of buildah and on
# the same platform:
#
#   deploy/image/build.sh core registry.example.com/model-gateway:1.0.0 [options of buildah build]
set -eu
target=$1 image=$2
shift 2
cd "$(dirname "$0")/../.."
# All files get the commit's time, and no layer comes from another build. Docker's format would record a random host name; OCI's
# has no HEALTHCHECK, which Kubernetes does not read.
exec buildah build --no-cache --timestamp "$(git log -1 --format=%ct)" --format oci \
  --file deploy/Dockerfile --target "$target" --tag "$image" "$@" .
