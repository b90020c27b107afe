package dev.nereid.distribution.deploy;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;

/** The scrape configuration and the alert rules of Prometheus, by its own programs. */
@Tag("slow")
final class AlertRulesIT {
    private static final Path PROMETHEUS = InstalledServer.HOME.resolve("deploy/prometheus");

    @Test
    void theRulesOfPrometheusAreValidAndAlert() throws Exception {
        Tool.require("promtool");
        for (String[] check : new String[][] {
            {"check", "config", "prometheus.yml"},
            {"check", "rules", "nereid.rules.yml"},
            {"test", "rules", "nereid.rules.test.yml"}
        }) {
            Tool.Result result = Tool.run(
                    PROMETHEUS,
                    Stream.concat(Stream.of("promtool"), Stream.of(check)).toArray(String[]::new));
            assertThat(result.status()).as(result.out()).isZero();
        }
    }

    /** Each metric of the rules is one that the server has, and each alert is on the page that says what to do. */
    @Test
    void theRulesNameMetricsOfTheServer() throws Exception {
        String rules = Files.readString(PROMETHEUS.resolve("nereid.rules.yml"));
        Set<String> named = words("\\b((?:nv|nereid|jvm|process)_[a-z0-9_]+)\\b", rules);
        String page = Files.readString(InstalledServer.CHECKOUT.resolve("docs/operations.md"));

        assertThat(named).hasSizeGreaterThan(10);
        assertThat(words("alert: (\\w+)", rules)).isEqualTo(words("`(Nereid[A-Z]\\w+)`", page));
        try (InstalledServer server = InstalledServer.serve(InstalledServer.MODELS)) {
            String metrics = server.metrics("GET", "/metrics").body();
            Set<String> served = words("(?m)^# TYPE (\\w+) ", metrics);
            assertThat(named).allMatch(name -> served.contains(name) || name.equals("nereid_control_overdue"));
            Set<String> causes = words("(\\w+)", String.join(" ", words("cause=~\"([^\"]+)\"", rules)));
            assertThat(causes).isNotEmpty().isSubsetOf(words("cause=\"(\\w+)\"", metrics));
        }
        // Served only while a load or close is overdue; MisbehaviorIT sees it.
        assertThat(Files.readString(InstalledServer.CHECKOUT.resolve("docs/misbehaving-plugins.md")))
                .contains("nereid_control_overdue");
    }

    /** {@code promtool} passes also where an alert has no test. */
    @Test
    void eachAlertFiresInATest() throws IOException {
        JsonObject tests = new Gson()
                .toJsonTree(new Yaml(new SafeConstructor(new LoaderOptions()))
                        .<Object>load(Files.readString(PROMETHEUS.resolve("nereid.rules.test.yml"))))
                .getAsJsonObject();
        Set<String> firing = new TreeSet<>();
        for (JsonElement test : tests.getAsJsonArray("tests")) {
            for (JsonElement element : test.getAsJsonObject().getAsJsonArray("alert_rule_test")) {
                JsonObject alert = element.getAsJsonObject();
                if (!alert.getAsJsonArray("exp_alerts").isEmpty()) {
                    firing.add(alert.get("alertname").getAsString());
                }
            }
        }

        assertThat(firing)
                .isEqualTo(words("alert: (\\w+)", Files.readString(PROMETHEUS.resolve("nereid.rules.yml"))))
                .hasSize(15);
    }

    private static Set<String> words(String pattern, String text) {
        return Pattern.compile(pattern)
                .matcher(text)
                .results()
                .map(match -> match.group(1))
                .collect(Collectors.toCollection(TreeSet::new));
    }
}
