#!/usr/bin/env bash
# Prints where Debian's packages come from on this machine.
{
  sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources
  awk '/^deb /{ print $2 }' /etc/apt/sources.list
  echo http://deb.debian.org/debian
} 2>/dev/null | head -n 1
