package dev.nereid.distribution;

import static com.tngtech.archunit.library.Architectures.layeredArchitecture;

import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.library.Architectures.LayeredArchitecture;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Rules of the layers inside a module: which of its packages may depend on which. Static functions only. */
final class LayerRules {
    private static final String ENTRY = "entry";

    private LayerRules() {}

    /** Returns the rule of the gRPC front end: entry, stream, service, connection, wire; each may use those after it. */
    static ArchRule frontendGrpc() {
        return layers("dev.nereid.grpc", "stream", "service", "connection", "wire")
                .whereLayer("stream")
                .mayOnlyAccessLayers("service", "connection", "wire")
                .whereLayer("service")
                .mayOnlyAccessLayers("connection", "wire")
                .whereLayer("connection")
                .mayOnlyAccessLayers("wire")
                .whereLayer("wire")
                .mayNotAccessAnyLayer()
                .because("a call passes the layers in this order, and its bytes know nothing of calls");
    }

    /** Returns the rule of the HTTP front end: handlers and connections use bodies and JSON, and not one another. */
    static ArchRule frontendHttp() {
        return layers("dev.nereid.http", "infer", "generate", "control", "connection", "tls", "body", "json")
                .whereLayer("infer")
                .mayOnlyAccessLayers("body", "json")
                .whereLayer("generate")
                .mayOnlyAccessLayers("body", "json")
                .whereLayer("control")
                .mayOnlyAccessLayers("body", "json")
                .whereLayer("connection")
                .mayOnlyAccessLayers("body", "json")
                .whereLayer("tls")
                .mayOnlyAccessLayers("body", "json")
                .whereLayer("body")
                .mayOnlyAccessLayers("json")
                .whereLayer("json")
                .mayNotAccessAnyLayer()
                .because("a handler is understood without the other handlers");
    }

    /** Returns the rule of the scheduler: instances take batches from the queue, and requests know neither. */
    static ArchRule scheduler() {
        return layers(
                        "dev.nereid.scheduler",
                        "instance",
                        "sequence",
                        "ensemble",
                        "queue",
                        "batch",
                        "cache",
                        "client",
                        "handle",
                        "request",
                        "memory",
                        "rate",
                        "admission",
                        "statistics",
                        "time")
                .whereLayer("instance")
                .mayOnlyAccessLayers(
                        "queue", "batch", "handle", "client", "request", "memory", "rate", "admission", "time")
                .whereLayer("sequence")
                .mayOnlyAccessLayers("queue", "batch", "request", "memory", "statistics", "time")
                .whereLayer("ensemble")
                .mayOnlyAccessLayers("queue", "batch", "request", "memory", "statistics", "time")
                .whereLayer("queue")
                .mayOnlyAccessLayers("batch", "request", "memory", "time")
                .whereLayer("batch")
                .mayOnlyAccessLayers("handle", "client", "request", "memory", "statistics")
                .whereLayer("handle")
                .mayOnlyAccessLayers("memory")
                .whereLayer("cache")
                .mayOnlyAccessLayers("request", "memory", "statistics")
                .whereLayer("request")
                .mayOnlyAccessLayers("memory", "admission", "statistics")
                .whereLayer("client")
                .mayNotAccessAnyLayer()
                .whereLayer("memory")
                .mayNotAccessAnyLayer()
                .whereLayer("rate")
                .mayNotAccessAnyLayer()
                .whereLayer("admission")
                .mayNotAccessAnyLayer()
                .whereLayer("statistics")
                .mayNotAccessAnyLayer()
                .whereLayer("time")
                .mayNotAccessAnyLayer()
                .because("a request is understood without the queue, and the queue without the instances");
    }

    /**
     * Returns the rule of the server: control decides what is loaded, ensembles and demand find what serves, and the life
     * cycle loads it.
     */
    static ArchRule server() {
        Map<String, List<String>> uses = new LinkedHashMap<>();
        uses.put(
                "control",
                List.of(
                        "ensemble",
                        "demand",
                        "options",
                        "lifecycle",
                        "instance",
                        "client",
                        "dependency",
                        "memory",
                        "response",
                        "warmup"));
        uses.put("ensemble", List.of("demand", "lifecycle", "classification", "dependency", "request"));
        uses.put("demand", List.of("options", "lifecycle"));
        uses.put("options", List.of("lifecycle", "instance", "host", "memory"));
        uses.put(
                "lifecycle",
                List.of(
                        "instance",
                        "client",
                        "classification",
                        "dependency",
                        "executor",
                        "host",
                        "memory",
                        "request",
                        "response",
                        "warmup"));
        uses.put("health", List.of("options"));
        uses.put("instance", List.of("host", "response"));
        uses.put("client", List.of("dependency", "response"));
        uses.put("warmup", List.of("request"));
        for (String lowest : List.of(
                "classification", "dependency", "executor", "host", "memory", "request", "response", "shared")) {
            uses.put(lowest, List.of());
        }
        LayeredArchitecture layers = layers("dev.nereid.server", uses.keySet().toArray(String[]::new));
        for (Map.Entry<String, List<String>> layer : uses.entrySet()) {
            layers = layer.getValue().isEmpty()
                    ? layers.whereLayer(layer.getKey()).mayNotAccessAnyLayer()
                    : layers.whereLayer(layer.getKey())
                            .mayOnlyAccessLayers(layer.getValue().toArray(String[]::new));
        }
        return layers.because("what is loaded is understood without who asks for it");
    }

    /** Returns the rule of repositories: configurations know no directories, and directories no storages. */
    static ArchRule modelRepository() {
        return layersBelow("dev.nereid.repository", "config", "storage", "files")
                .whereLayer("config")
                .mayNotAccessAnyLayer()
                .whereLayer("storage")
                .mayOnlyAccessLayers(ENTRY)
                .whereLayer("files")
                .mayOnlyAccessLayers(ENTRY)
                .whereLayer(ENTRY)
                .mayNotAccessAnyLayer()
                .because("a directory of models is understood without what copies its files");
    }

    /** Returns the rule of plugins: their jars and their boundary know nothing of what the plugins bring. */
    static ArchRule pluginHost() {
        return layersBelow("dev.nereid.plugin", "agent", "cache", "boundary", "jar")
                .whereLayer("agent")
                .mayOnlyAccessLayers(ENTRY)
                .whereLayer("cache")
                .mayNotAccessAnyLayer()
                .whereLayer("boundary")
                .mayNotAccessAnyLayer()
                .whereLayer("jar")
                .mayNotAccessAnyLayer()
                .whereLayer(ENTRY)
                .mayOnlyAccessLayers("boundary", "jar")
                .because("a jar is understood without the backend in it");
    }

    /** Returns the rule of the Python backend: what a process does is understood without the instance that has it. */
    static ArchRule backendPython() {
        return layers(
                        "dev.nereid.backend.python",
                        "call",
                        "report",
                        "execute",
                        "environment",
                        "process",
                        "memory",
                        "frame",
                        "posix")
                .whereLayer("call")
                .mayOnlyAccessLayers("memory", "frame")
                .whereLayer("report")
                .mayOnlyAccessLayers("frame")
                .whereLayer("execute")
                .mayOnlyAccessLayers("process", "memory", "frame")
                .whereLayer("environment")
                .mayOnlyAccessLayers("frame")
                .whereLayer("process")
                .mayOnlyAccessLayers("frame", "posix")
                .whereLayer("memory")
                .mayOnlyAccessLayers("frame", "posix")
                .whereLayer("frame")
                .mayNotAccessAnyLayer()
                .whereLayer("posix")
                .mayNotAccessAnyLayer()
                .because("a process is understood without the model, and frames without the process");
    }

    /**
     * Returns the layers of a module: its root package, which may use all others, as may its {@code check}, and its
     * subpackages. A layer without classes breaks the rule.
     */
    private static LayeredArchitecture layers(String module, String... subpackages) {
        return layersBelow(module, subpackages).whereLayer(ENTRY).mayNotBeAccessedByAnyLayer();
    }

    /** Returns the layers of a module, without a rule for its root package. */
    private static LayeredArchitecture layersBelow(String module, String... subpackages) {
        LayeredArchitecture layers = layeredArchitecture()
                .consideringOnlyDependenciesInAnyPackage(module + "..")
                .layer(ENTRY)
                .definedBy(module, module + ".check..");
        for (String subpackage : subpackages) {
            layers = layers.layer(subpackage).definedBy(module + "." + subpackage + "..");
        }
        return layers;
    }
}
