"""Asks Prometheus for every expression of a dashboard of Grafana and of a file of alert rules.

monitoring.py ADDRESS DASHBOARD RULES ALERT...: fails unless each panel has a value, and exactly the alerts named have one.
"""
import json, os, sys, time, urllib.parse, urllib.request

address, dashboard, rules, *wanted = sys.argv[1:]


def ask(expression):
    query = urllib.parse.urlencode({"query": expression})
    with urllib.request.urlopen(f"http://{address}/api/v1/query?{query}", timeout=10) as answer:
        body = json.load(answer)
    assert body["status"] == "success", f"{expression}: {body}"
    return body["data"]["result"]


def get(path):
    with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as answer:
        return json.load(answer)["data"]


def missing():
    """The panels without a value, and alerts that have one and should not, or the other way round."""
    faults = []
    for panel in json.load(open(dashboard))["panels"]:
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "10s").replace("$instance", ".+")
            assert "$" not in expression, f"a variable that is not known: {expression}"
            if not ask(expression):
                faults.append(f"panel without a value: {panel['title']}: {expression}")
    known = [rule for group in get("/api/v1/rules")["groups"] for rule in group["rules"]]
    names = {rule["name"] for rule in known}
    assert len(names) == open(rules).read().count("- alert: "), f"rules that Prometheus has: {names}"
    for rule in known:
        has = bool(ask(rule["query"]))
        if has != (rule["name"] in wanted):
            faults.append(f"alert {rule['name']}: {'has' if has else 'no'} value: {rule['query']}")
    return faults


# Rates need two scrapes.
for last in [False] * int(os.environ.get("TRIES", "40")) + [True]:
    faults = missing()
    if not faults:
        break
    if last:
        sys.exit("\n".join(faults))
    time.sleep(0.5)
