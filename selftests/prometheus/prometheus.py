#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""prometheus.py SHARE WORK: what Prometheus says of metrics, rules and the queries of the dashboard.

The suite monitoring leaves in SHARE the file metrics.prom, which promtool checks, and in metrics/ files that are called
NAME-SECONDS, each of which has to be OpenMetrics. Prometheus gets these as the history of hosts of these names, is
started in WORK, and is asked each query over that time. A query without an answer is a failure. WORK/picture.svg is
drawn from the answers; the picture in the documentation has to show the same panels, in the same units.
"""
import json
import math
import pathlib
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
import xml.etree.ElementTree

from prometheus_client.openmetrics.parser import text_string_to_metric_families

HERE = pathlib.Path(__file__).parent
PACKAGE = HERE / "../../tools/rdma-cm/prometheus"
DOCUMENTED = HERE / "../../Documentation/administration/dashboard.svg"
# In place of Grafana's variables; the recording is short.
VARIABLES = {"$__rate_interval": "15s", "$instance": ".*"}
STEP = 1


def quoted(text):
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def history(metrics, out):
    """Writes all files as one, with times. Returns when the first and the last one were made."""
    families, times = {}, []
    for path in sorted(metrics.iterdir(), key=lambda path: float(path.name.split("-")[1])):
        host, at = path.name.split("-")
        text = path.read_text()
        # The last one may be cut off, because the recorder was killed.
        if not text.endswith("# EOF\n"):
            continue
        times.append(float(at))
        for family in text_string_to_metric_families(text):
            head, samples = families.setdefault(family.name, (f"# TYPE {family.name} {family.type}\n", {}))
            for sample in family.samples:
                labels = {"instance": host, **sample.labels}
                labels = ",".join(f'{name}="{quoted(value)}"' for name, value in labels.items())
                samples.setdefault(f"{sample.name}{{{labels}}}", []).append(f"{sample.value} {at}")
    with out.open("w") as file:
        for head, samples in families.values():
            file.write(head)
            for series, values in samples.items():
                file.writelines(f"{series} {value}\n" for value in values)
        file.write("# EOF\n")
    return times[0], times[-1], len(times)


def ask(url, query, start, end):
    """The answer: values by time, by the labels of a series."""
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    arguments = urllib.parse.urlencode({"query": query, "start": start, "end": end, "step": STEP})
    with urllib.request.urlopen(f"{url}/api/v1/query_range?{arguments}") as answer:
        return json.load(answer)["data"]["result"]


def title(legend, labels):
    for name, value in labels.items():
        legend = legend.replace("{{" + name + "}}", value)
    return legend


COLOURS = "#0057ae #c8102e #2e7d32 #b26a00 #6a1b9a #00838f #5d4037 #455a64".split()
STYLE = (
    "text{font:11px sans-serif;fill:#1a1a1a}.title{font-weight:bold;font-size:12px}.grid{stroke:#bbb;stroke-width:.5}"
    "polyline{fill:none;stroke-width:1.4}@media(prefers-color-scheme:dark){text{fill:#e6e6e6}.grid{stroke:#555}}"
)


def short(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def panel(panel_title, unit, series, start, end, left, top):
    """A panel of the picture, 380 by 190."""
    def escaped(text):
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    width, height, at_x, at_y = 310, 96, left + 52, top + 26
    points = [[(float(at), float(value)) for at, value in values if not math.isnan(float(value))] for _, values in series]
    peak = max((value for values in points for _, value in values), default=1) or 1
    out = [f'<text class="title" x="{left + 8}" y="{top + 16}">{escaped(panel_title)}</text>']
    for part in (0, 0.5, 1):
        y = at_y + height * (1 - part)
        label = {"percentunit": f"{short(peak * part * 100)} %", "s": f"{short(peak * part * 1000)} ms"}.get(
            unit, short(peak * part))
        out.append(f'<line class="grid" x1="{at_x}" x2="{at_x + width}" y1="{y}" y2="{y}"/>')
        out.append(f'<text x="{at_x - 4}" y="{y + 4}" text-anchor="end">{label}</text>')
    for seconds in range(0, int(end - start) + 1, 10):
        x = at_x + width * seconds / (end - start)
        out.append(f'<text x="{x:.0f}" y="{at_y + height + 13}" text-anchor="middle">{seconds} s</text>')
    order = sorted(range(len(series)), key=lambda n: -max((value for _, value in points[n]), default=0))
    for place, n in enumerate(order[:6]):
        colour = COLOURS[place]
        line = " ".join(
            f"{at_x + width * (at - start) / (end - start):.1f},{at_y + height * (1 - value / peak):.1f}"
            for at, value in points[n])
        out.append(f'<polyline stroke="{colour}" points="{line}"/>')
        x, y = at_x + 155 * (place % 2), at_y + height + 28 + 13 * (place // 2)
        name = series[n][0]
        # A long name is smaller, to fit into its column.
        size = ";font-size:9px" if len(name) > 25 else ""
        out.append(f'<text x="{x}" y="{y}" style="fill:{colour}{size}">{escaped(name)}</text>')
    return "\n".join(out)


def draw(panels, start, end, picture):
    rows = (len(panels) + 1) // 2
    body = "\n".join(
        panel(*one, start, end, 390 * (n % 2), 195 * (n // 2)) for n, one in enumerate(panels))
    picture.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 {195 * rows}" width="780" height="{195 * rows}">\n'
        f"<title>The panels of the dashboard, drawn from the answers of Prometheus</title>\n<style>{STYLE}</style>\n"
        f"{body}\n</svg>\n")


def shown(picture):
    """The panels of a picture: the title of each, the unit of its axis and the names of its series."""
    panels = []
    for text in xml.etree.ElementTree.parse(picture).getroot().iter("{http://www.w3.org/2000/svg}text"):
        if text.get("class") == "title":
            panels.append([text.text, None, set()])
        elif text.get("style"):
            panels[-1][2].add(text.text)
        elif text.get("text-anchor") == "end":
            panels[-1][1] = text.text.partition(" ")[2]
    return panels


def differing(picture, panels):
    """Yields each difference between the picture in the documentation and the one that was drawn. Both show the highest
    of many series only, which are others in the next storm: one of those that are documented has to be there."""
    old, new = shown(DOCUMENTED), shown(picture)
    if [one[:2] for one in old] != [one[:2] for one in new]:
        yield f"the panels were {[one[:2] for one in old]}, and are {[one[:2] for one in new]}"
        return
    for (name, _, legends), (_, _, series) in zip(old, panels):
        if not legends & {legend for legend, _ in series}:
            yield f"{name}: of {sorted(legends)} there is none"


def main():
    share, work = map(pathlib.Path, sys.argv[1:])
    number, failed, panels = 0, 0, []

    def result(is_ok, name):
        nonlocal number, failed
        number += 1
        failed += not is_ok
        print(f"{'ok' if is_ok else 'not ok'} {number} - {name}", flush=True)

    def promtool(name, *arguments, **options):
        done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, cwd=PACKAGE, check=False,
                              **options)
        print("".join(f"# {line}\n" for line in (done.stdout + done.stderr).splitlines()), end="")
        result(done.returncode == 0, name)

    promtool("promtool check metrics", "check", "metrics", input=(share / "metrics.prom").read_text())
    promtool("promtool check rules", "check", "rules", "rules.yml")
    promtool("promtool test rules", "test", "rules", "rules.test.yml")
    start, end, files = history(share / "metrics", work / "history")
    result(files >= 10, "what was recorded is OpenMetrics")
    promtool("the history of the hosts", "tsdb", "create-blocks-from", "openmetrics", work / "history", work / "data")
    (work / "prometheus.yml").write_text("global: {}\n")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    url = f"http://{address}"
    with (work / "log").open("w") as log:
        server = subprocess.Popen(
            ["prometheus", f"--config.file={work}/prometheus.yml", f"--storage.tsdb.path={work}/data",
             f"--web.listen-address={address}", "--storage.tsdb.retention.time=100y"], stdout=log, stderr=log)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{url}/-/ready").close()
                break
            except OSError:
                time.sleep(0.2)
        for one in json.loads((PACKAGE / "dashboard.json").read_text())["panels"]:
            series = []
            for target in one["targets"]:
                answer = ask(url, target["expr"], start, end)
                result(bool(answer), f"{one['title']}: {target['legendFormat']}")
                series += [(title(target["legendFormat"], found["metric"]), found["values"]) for found in answer]
            panels.append((one["title"], one["fieldConfig"]["defaults"]["unit"], series))
    finally:
        server.terminate()
        server.wait()
    draw(panels, start, end, work / "picture.svg")
    found = list(differing(work / "picture.svg", panels))
    print("".join(f"# {line}\n" for line in found), end="")
    result(not found, "the picture in the documentation")
    print(f"1..{number}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
