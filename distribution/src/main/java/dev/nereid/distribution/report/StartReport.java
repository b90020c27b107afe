package dev.nereid.distribution.report;

import dev.nereid.api.BestEffort;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.distribution.process.Endpoint;
import dev.nereid.distribution.process.Endpoints;
import dev.nereid.plugin.BackendStatus;
import dev.nereid.server.PluginExtension;
import dev.nereid.spi.DataType;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The start-up report: backends, models, memory limits, addresses and example requests. Immutable.
 *
 * @param backends the backends and the state of their plugins
 * @param extensions the repository agents and storages
 * @param failed what the start could not load; may be in the index of the models too
 * @param endpoints the open ports
 */
public record StartReport(
        List<BackendStatus> backends,
        List<PluginExtension> extensions,
        ModelCatalog models,
        List<ModelStatus> failed,
        MemoryReport memory,
        Endpoints endpoints) {
    private static final Logger LOG = LoggerFactory.getLogger(StartReport.class);

    /** In the log, a port that is not open. */
    private static final String NONE = "none";

    private static final int MAX_EXAMPLES = 10;

    public StartReport {
        backends = List.copyOf(backends);
        extensions = List.copyOf(extensions);
        failed = List.copyOf(failed);
    }

    public String text(CurlExample.Values values) {
        return text(values, name -> true);
    }

    /** Returns the report, with examples that send the given values to some of the models, selected by name. */
    public String text(CurlExample.Values values, Predicate<String> shown) {
        List<ModelStatus> index = BestEffort.get("index of models", failed, this::index);
        return section("table of backends", () -> BackendTable.of(backends) + "\n")
                + section("table of extensions", () -> ExtensionTable.of(extensions))
                + section("table of models", () -> modelTable(index) + "\n")
                + section("memory limits", () -> memory.text() + "\n")
                + section("addresses", () -> endpoints.open().isEmpty() ? "" : addresses())
                + section(
                        "examples",
                        () -> endpoints
                                .localHttp()
                                .map(address -> examples(index, new CurlExample(address, values), shown))
                                .orElse(""));
    }

    private static String section(String what, Supplier<String> text) {
        return BestEffort.get(what, what + ": not available; the log has the reason\n", text);
    }

    /** Returns the states of all models, those included that the start did not find. */
    private List<ModelStatus> index() {
        List<ModelStatus> all = new ArrayList<>(models.index());
        Set<String> known = known();
        failed.stream().filter(status -> !known.contains(status.name())).forEach(all::add);
        return all;
    }

    private Set<String> known() {
        return models.index().stream().map(ModelStatus::name).collect(Collectors.toSet());
    }

    /**
     * Returns the names of the models that failed, in one line; empty if it was none of them, or if something failed that
     * is no known model, such as a repository that cannot be listed.
     */
    public Optional<String> failures() {
        Set<String> known = known();
        if (failed.stream().anyMatch(status -> !known.contains(status.name()))) {
            return Optional.empty();
        }
        List<String> names = index().stream()
                .filter(status -> status.state() == ModelStatus.State.UNAVAILABLE)
                .map(ModelStatus::name)
                .distinct()
                .toList();
        return names.isEmpty()
                ? Optional.empty()
                : Optional.of("models: " + String.join(", ", names)
                        + " (expected: every model loads; reasons in the table above)");
    }

    /** Logs what the table says of the ports and models, for logs that programs read. */
    public void log() {
        BestEffort.run("line about the start", this::logServing);
    }

    private void logServing() {
        long ready = index().stream()
                .filter(status -> status.state() == ModelStatus.State.READY)
                .count();
        LOG.atInfo()
                .addKeyValue("http", endpoints.http().map(Endpoint::url).orElse(NONE))
                .addKeyValue("grpc", endpoints.grpc().map(Endpoint::authority).orElse(NONE))
                .addKeyValue(
                        "metrics",
                        endpoints.metrics().map(open -> open.url() + "/metrics").orElse(NONE))
                .addKeyValue("readyVersions", ready)
                .log("serving");
    }

    private static TextTable modelTable(List<ModelStatus> index) {
        TextTable table = new TextTable("MODEL", "VERSION", "STATUS");
        for (ModelStatus status : index) {
            String version = status.version().isPresent()
                    ? String.valueOf(status.version().getAsLong())
                    : "-";
            String reason = status.reason().isEmpty() ? "" : ": " + status.reason();
            table.add(status.name(), version, status.state().name() + reason);
        }
        return table;
    }

    private String addresses() {
        TextTable table = new TextTable("PORT", "ADDRESS");
        endpoints.http().ifPresent(endpoint -> table.add("HTTP", endpoint.url()));
        endpoints.grpc().ifPresent(endpoint -> table.add("gRPC", endpoint.authority()));
        endpoints.metrics().ifPresent(endpoint -> table.add("metrics", endpoint.url() + "/metrics"));
        boolean local = endpoints.open().stream().allMatch(Endpoint::isLocalOnly);
        return table
                + (local
                        ? "Only this machine reaches them (--http-address, --grpc-address, --metrics-address).\n"
                        : "");
    }

    private String examples(List<ModelStatus> index, CurlExample example, Predicate<String> shown) {
        List<String> lines = index.stream()
                .filter(status -> status.state() == ModelStatus.State.READY)
                .map(ModelStatus::name)
                .filter(shown)
                .distinct()
                .limit(MAX_EXAMPLES)
                .flatMap(name ->
                        BestEffort.get("example of a request", Optional.<String>empty(), () -> line(name, example))
                                .stream())
                .toList();
        return lines.isEmpty() ? "" : "\n" + String.join("\n", lines) + "\n";
    }

    private Optional<String> line(String name, CurlExample example) {
        try {
            ModelMetadata model = models.metadata(ModelRef.latest(name));
            // An empty text is no picture, and no sentence: what a model expects of its bytes is unknown.
            boolean hasTexts = model.inputs().stream().anyMatch(input -> input.type() == DataType.BYTES);
            return model.decoupled() || hasTexts
                    ? Optional.empty()
                    : example.line(model, models.config(ModelRef.latest(name)));
        } catch (InferenceException unloadedMeanwhile) {
            return Optional.empty();
        }
    }
}
