#!/bin/sh
# What a unit for Fluent Bit starts: it reads events from its standard input.
{
  exec tail -n 0 -F /var/log/suricata/eve.json | exec fibula enrich --quiet --follow --table /var/lib/fibula/sites.fibula --column src_ip --input-format json-line
} | exec fluent-bit -c /etc/fluent-bit/fluent-bit.conf
