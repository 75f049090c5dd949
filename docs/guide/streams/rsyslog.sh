#!/bin/sh
# /etc/rsyslog.d/fibula.sh, executable: takes a message of rsyslog as an object of JSON, answers the properties that it gets. Rsyslog gives it no environment, and takes standard error for answers too.
exec 2>>/var/log/fibula.log
/usr/bin/fibula enrich --quiet --follow --table /var/lib/fibula/sites.fibula --column '$!.ip' --input-format json-line |
  exec sed -u -E 's/.*,("prefix":.*)\}$/{"$!":{\1}}/'
