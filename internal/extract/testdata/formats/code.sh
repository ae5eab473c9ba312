#!/bin/sh
# Prints usage.
usage() {
  echo "usage"
}

function main {
  usage
}

main "$@"
