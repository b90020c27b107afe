package dev.nereid.distribution.deploy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.Gson;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.nereid.distribution.process.ExitStatus;
import dev.nereid.distribution.testing.InstalledServer;
import io.kubernetes.client.openapi.JSON;
import io.kubernetes.client.openapi.models.V1Container;
import io.kubernetes.client.openapi.models.V1Deployment;
import io.kubernetes.client.openapi.models.V1Service;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.yaml.snakeyaml.LoaderOptions;
import org.yaml.snakeyaml.Yaml;
import org.yaml.snakeyaml.constructor.SafeConstructor;

/** The files of the directory {@code deploy}, each by the program that reads it or by its schema. */
@Tag("slow")
final class DeployFilesIT {
    private static final Path DEPLOY = InstalledServer.HOME.resolve("deploy");
    private static final String INSTALLED = "/opt/nereid";

    /** The exposure from 0 to 100 that is acceptable; units without any setting have about 96. */
    private static final String MAX_EXPOSURE = "20";

    /** A server that does not stop in time ends its process so long after {@code --exit-timeout-secs}. */
    private static final long SECONDS_AFTER_TIMEOUT = 5;

    /** The grace period of a pod whose manifest has none. */
    private static final long DEFAULT_GRACE_SECONDS = 30;

    private static final Set<String> RUNTIME_FIELDS =
            Set.of("annotations", "supportedModelFormats", "protocolVersions", "containers");
    private static final Set<String> FORMAT_FIELDS = Set.of("name", "version", "autoSelect", "priority");

    @TempDir
    private Path directory;

    @Test
    void theUnitIsValidAndHardened() throws Exception {
        Tool.require("systemd-analyze");
        String unit = unit();
        Path file = Files.writeString(
                directory.resolve("nereid.service"), unit.replace(INSTALLED, InstalledServer.HOME.toString()));

        Tool.Result verified = Tool.run(directory, "systemd-analyze", "verify", file.toString());
        assertThat(verified.status()).as(verified.out()).isZero();
        assertThat(verified.out()).doesNotContain("nereid.service:");
        Tool.Result security = Tool.run(
                directory,
                "systemd-analyze",
                "security",
                "--offline=true",
                "--threshold=" + MAX_EXPOSURE,
                file.toString());
        assertThat(security.status()).as(security.out()).isZero();
    }

    @Test
    void theUnitStopsLaterThanTheServer() throws IOException {
        assertThat(seconds("TimeoutStopSec=(\\d+)", unit()))
                .isGreaterThan(seconds("NEREID_EXIT_TIMEOUT_SECS=(\\d+)", settings()) + SECONDS_AFTER_TIMEOUT);
        assertThat(unit())
                .contains("EnvironmentFile=/etc/nereid/nereid.env", "ExecStart=" + INSTALLED + "/bin/nereid serve");
        assertThat(unit()).contains("RestartPreventExitStatus=" + ExitStatus.USAGE);
    }

    @Test
    void theSettingsOfTheUnitAreVariablesOfFlags() throws Exception {
        Tool.require("openssl");
        Tool.Result made = Tool.run(
                directory,
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-subj",
                "/CN=localhost",
                "-keyout",
                "tls.key",
                "-out",
                "tls.crt");
        assertThat(made.status()).as(made.out()).isZero();
        assertThat(Pattern.compile("^NEREID_([A-Z_]+)=(.*)$", Pattern.MULTILINE)
                        .matcher(settings())
                        .results()
                        .filter(setting -> !setting.group(1).equals("JAVA_OPTIONS"))
                        .map(setting -> "--"
                                + setting.group(1).toLowerCase(Locale.ROOT).replace('_', '-') + "="
                                + setting.group(2).replace("/etc/nereid/tls", directory + "/tls")))
                .isNotEmpty()
                .satisfies(flags -> assertKnown(List.copyOf(flags)));
    }

    @Test
    void theManifestOfKubernetesFitsItsSchema() throws Exception {
        List<JsonObject> documents = documents("kubernetes/nereid.yaml");
        assertThat(documents).hasSize(2);
        V1Deployment.validateJsonElement(documents.getFirst());
        V1Service.validateJsonElement(documents.getLast());
        V1Deployment deployment = JSON.getGson().fromJson(documents.getFirst(), V1Deployment.class);
        V1Service service = JSON.getGson().fromJson(documents.getLast(), V1Service.class);
        var pod = deployment.getSpec().getTemplate().getSpec();
        V1Container container = pod.getContainers().getFirst();

        assertThat(pod.getEnableServiceLinks()).isFalse();
        assertThat(pod.getTerminationGracePeriodSeconds()).isGreaterThan(secondsToEnd(container));
        assertThat(pod.getSecurityContext().getRunAsNonRoot()).isTrue();
        assertThat(container.getSecurityContext().getReadOnlyRootFilesystem()).isTrue();
        assertThat(container.getResources().getLimits()).containsKey("memory");
        // A broken model must not end the container over and over, as ProbesIT says.
        assertThat(container.getStartupProbe().getHttpGet().getPath()).isEqualTo("/v2/health/live");
        assertThat(container.getReadinessProbe().getHttpGet().getPath()).isEqualTo("/v2/health/ready");
        assertThat(container.getLivenessProbe().getHttpGet().getPath()).isEqualTo("/v2/health/live");
        assertThat(container.getArgs())
                .contains("--http-address=0.0.0.0", "--grpc-address=0.0.0.0", "--metrics-address=0.0.0.0");
        assertKnown(container.getArgs().subList(1, container.getArgs().size()));
        assertThat(service.getSpec().getSelector())
                .isEqualTo(deployment.getSpec().getTemplate().getMetadata().getLabels());
        assertThat(service.getSpec().getPorts())
                .allMatch(port -> container.getPorts().stream()
                        .anyMatch(
                                own -> own.getName().equals(port.getTargetPort().getStrValue())));
    }

    /** A test of the test: the schema knows the fields. */
    @Test
    void aMisspeltFieldOfAManifestIsFound() throws Exception {
        JsonObject deployment = documents("kubernetes/nereid.yaml").getFirst();
        JsonObject pod =
                deployment.getAsJsonObject("spec").getAsJsonObject("template").getAsJsonObject("spec");
        pod.add("enableServiceLink", pod.remove("enableServiceLinks"));

        assertThatThrownBy(() -> V1Deployment.validateJsonElement(deployment))
                .hasMessageContaining("enableServiceLink");
    }

    @Test
    void theRuntimeOfKserveHasItsFields() throws Exception {
        JsonObject runtime = documents("kserve/nereid-runtime.yaml").getFirst();
        JsonObject spec = runtime.getAsJsonObject("spec");

        assertThat(runtime.get("apiVersion").getAsString()).isEqualTo("serving.kserve.io/v1alpha1");
        assertThat(runtime.get("kind").getAsString()).isEqualTo("ServingRuntime");
        assertThat(runtime.keySet()).isEqualTo(Set.of("apiVersion", "kind", "metadata", "spec"));
        assertThat(spec.keySet()).isSubsetOf(RUNTIME_FIELDS);
        spec.getAsJsonArray("supportedModelFormats")
                .forEach(format -> assertThat(format.getAsJsonObject().keySet()).isSubsetOf(FORMAT_FIELDS));
        JsonElement element = spec.getAsJsonArray("containers").get(0);
        V1Container.validateJsonElement(element);
        V1Container container = JSON.getGson().fromJson(element, V1Container.class);
        assertThat(container.getName()).isEqualTo("kserve-container");
        assertThat(container.getArgs()).contains("--model-repository=/mnt/models");
        assertThat(secondsToEnd(container)).isLessThanOrEqualTo(DEFAULT_GRACE_SECONDS);
        assertKnown(container.getArgs().subList(1, container.getArgs().size()));
    }

    @Test
    void theContainerfileNamesWhatTheDistributionHas() throws Exception {
        String file = Files.readString(DEPLOY.resolve("Containerfile"));

        assertThat(file.lines()).contains("COPY nereid " + INSTALLED, "USER 10001:10001");
        assertThat(Pattern.compile(INSTALLED + "(/bin/[\\w-]+)")
                        .matcher(file)
                        .results()
                        .map(path -> InstalledServer.HOME.resolve(path.group(1).substring(1))))
                .isNotEmpty()
                .allMatch(Files::isExecutable);
        String command =
                file.lines().filter(line -> line.startsWith("CMD ")).findFirst().orElseThrow();
        List<String> arguments = Arrays.asList(new Gson().fromJson(command.substring(4), String[].class));
        assertThat(arguments.getFirst()).isEqualTo("serve");
        assertKnown(arguments.subList(1, arguments.size()));
    }

    /**
     * Starts a server with the flags and a model repository that does not exist: it reports that, and no flag. It exits on
     * errors, since it would run without a repository otherwise.
     */
    private static void assertKnown(List<String> flags) throws IOException, InterruptedException {
        List<String> arguments = new ArrayList<>(List.of("serve"));
        flags.stream()
                .filter(flag -> !flag.startsWith("--model-repository=") && !flag.startsWith("--log-file="))
                .map(flag -> flag.equals("--exit-on-error=false") ? "--exit-on-error=true" : flag)
                .forEach(arguments::add);
        arguments.add("--model-repository=/nonexistent/models");
        InstalledServer.Result result = InstalledServer.run(arguments.toArray(String[]::new));

        assertThat(result.err()).contains("/nonexistent/models (expected: an existing directory)");
        assertThat(result.err()).doesNotContain("unknown flag", "did you mean");
    }

    /** Returns how long the server takes to end at most. The delay is a part of the timeout, so it must be shorter. */
    private static long secondsToEnd(V1Container container) {
        long timeout = number(container, "--exit-timeout-secs");
        assertThat(number(container, "--exit-delay-secs")).isLessThan(timeout);
        return timeout + SECONDS_AFTER_TIMEOUT;
    }

    private static long number(V1Container container, String flag) {
        return seconds(flag + "=(\\d+)", String.join("\n", container.getArgs()));
    }

    private static long seconds(String pattern, String text) {
        MatchResult found =
                Pattern.compile(pattern).matcher(text).results().findFirst().orElseThrow();
        return Long.parseLong(found.group(1));
    }

    private static List<JsonObject> documents(String file) throws IOException {
        Yaml yaml = new Yaml(new SafeConstructor(new LoaderOptions()));
        return StreamSupport.stream(
                        yaml.loadAll(Files.readString(DEPLOY.resolve(file))).spliterator(), false)
                .map(document -> new Gson().toJsonTree(document).getAsJsonObject())
                .toList();
    }

    private static String unit() throws IOException {
        return Files.readString(DEPLOY.resolve("systemd/nereid.service"));
    }

    private static String settings() throws IOException {
        return Files.readString(DEPLOY.resolve("systemd/nereid.env"));
    }
}
