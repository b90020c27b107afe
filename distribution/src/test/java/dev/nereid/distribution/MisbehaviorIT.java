package dev.nereid.distribution;

import static dev.nereid.distribution.testing.TensorBytes.floats;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.trouble.TroubleBackendProvider;
import inference.GRPCInferenceServiceGrpc;
import inference.GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Every fault of a plugin that one process can contain, by the installed server: in the log, in readiness, metrics and
 * index, while another model serves over both protocols. {@code docs/misbehaving-plugins.md} shows the same.
 */
@Timeout(300)
@Tag("slow")
final class MisbehaviorIT {
    private static final int TIMEOUT_SECONDS = 60;
    private static final String OTHER = "other";
    private static final String SECOND = "1 s: ";
    private static final Path PAGE = InstalledServer.CHECKOUT.resolve("docs/misbehaving-plugins.md");

    /** A queue with a timeout: a request that waits for two seconds behind the fault fails. */
    private static final String IMPATIENT =
            "dynamic_batching { default_queue_policy { default_timeout_microseconds: 2000000 } }";

    /** A fault, and how it is seen. {@code %s} is the model, named as the fault. */
    enum Fault {
        LOOP(
                TroubleBackendProvider.LOOP,
                "execution takes longer than its limit",
                "TroubledModel.loop",
                "instances whose executions take longer than " + SECOND + "%s_0",
                "nereid_execution_overdue{model=\"%s\",version=\"1\"} 1"),
        BLOCK(
                TroubleBackendProvider.WAIT,
                "execution takes longer than its limit",
                "TroubledModel.await",
                "instances whose executions take longer than " + SECOND + "%s_0",
                "nereid_execution_overdue{model=\"%s\",version=\"1\"} 1"),
        DEFER(
                TroubleBackendProvider.DEFER,
                "deferred execution takes longer than its limit",
                "TroubledModel.await",
                "requests whose deferred executions take longer than " + SECOND + "1",
                "nereid_execution_overdue{model=\"%s\",version=\"1\"} 1"),
        /** The action runs at once, on the thread of the execution, if the response is there before. */
        CALL(
                TroubleBackendProvider.CALL,
                "execution takes longer than its limit",
                "TroubledModel.await",
                "executions take longer than " + SECOND,
                "nereid_execution_overdue{model=\"%s\",version=\"1\"} "),
        MEMORY(
                TroubleBackendProvider.EXHAUST_DIRECT_MEMORY,
                "backend failed unexpectedly",
                "TroubledModel.exhaustDirectMemory",
                "instances whose last executions failed with OutOfMemoryError: %s_0",
                "nereid_execution_out_of_memory_total{model=\"%s\",version=\"1\"} "),
        THREADS(
                TroubleBackendProvider.LEAK_THREADS,
                "plugin has started many threads",
                "TroubledModel.await",
                "plugin 'TroubleBackendProvider' has started ",
                "nereid_plugin_threads{plugin=\"TroubleBackendProvider\"} "),
        OUTPUT(
                TroubleBackendProvider.CHANGE_OUTPUT,
                "output was changed after it was passed to the server",
                "dev.nereid.trouble",
                "output 'OUTPUT0' was changed after it was passed to the server",
                "nereid_output_changed_total{model=\"%s\",version=\"1\"} ");

        private final int selector;
        private final String event;
        private final String frame;
        private final String reason;
        private final String metric;

        Fault(int selector, String event, String frame, String reason, String metric) {
            this.selector = selector;
            this.event = event;
            this.frame = frame;
            this.reason = reason;
            this.metric = metric;
        }

        String model() {
            return name().toLowerCase(Locale.ROOT);
        }

        String of(String text) {
            return text.replace("%s", model());
        }

        /** Returns whether its request gets no response before the fault ends. */
        boolean isHeld() {
            return this == LOOP || this == BLOCK || this == DEFER || this == CALL;
        }

        /** Returns whether more than one request may be needed until it is seen. */
        boolean isRepeated() {
            return this == MEMORY || this == OUTPUT;
        }

        /** Returns whether requests wait behind it: a deferred execution leaves its instance free. */
        boolean isHoldingInstance() {
            return this == LOOP || this == BLOCK;
        }

        /** Returns whether only another load makes the model ready. */
        boolean isForGood() {
            return this == OUTPUT;
        }
    }

    /** An output that does not fit the configuration, and what the log says. */
    enum Wrong {
        RANK(
                TroubleBackendProvider.WRONG_RANK,
                "'OUTPUT0', configured [1], given [1,1]",
                "output does not fit the configuration"),
        DIMENSION(
                TroubleBackendProvider.WRONG_DIMENSION,
                "'OUTPUT0', configured [1], given [2]",
                "output does not fit the configuration"),
        TYPE(
                TroubleBackendProvider.WRONG_TYPE,
                "'OUTPUT0', configured FP32, given INT32",
                "output has another type than configured"),
        MISSING(
                TroubleBackendProvider.NO_OUTPUT,
                "'OUTPUT0', configured [1], given nothing",
                "output missing from a response"),
        UNKNOWN(
                TroubleBackendProvider.UNKNOWN_OUTPUT,
                "'OUTPUT9', configured nothing, given FP32 [1]",
                "output dropped, which is not in the configuration");

        private final int selector;
        private final String output;
        private final String event;

        Wrong(int selector, String output, String event) {
            this.selector = selector;
            this.output = output;
            this.event = event;
        }

        String model() {
            return "wrong_" + name().toLowerCase(Locale.ROOT);
        }
    }

    @TempDir
    private static Path directory;

    private static Repository models;
    private static InstalledServer server;
    private static ManagedChannel channel;

    @BeforeAll
    static void start() throws IOException {
        models = new Repository(directory.resolve("models")).model(OTHER, Repository.identity(0, "FP32", "[ -1 ]", ""));
        for (Fault fault : Fault.values()) {
            models.model(fault.model(), config(fault.isHoldingInstance() ? IMPATIENT : parameters("callee", OTHER)));
        }
        models.model("called", Repository.identity(0, "FP32", "[ -1 ]", ""));
        models.model("forgetful", config(parameters("callee", "called")));
        for (String model : new String[] {"leaking", "looping", "waiting", "deferring"}) {
            models.model(model, config(""));
        }
        for (Wrong wrong : Wrong.values()) {
            models.model(wrong.model(), config("").replaceFirst("(?s)(output .*)\\[ -1 ]", "$1[ 1 ]"));
        }
        models.model("keeper", config(parameters("callee", "called")));
        for (String where : new String[] {"wait_in_load", "wait_in_close", "wait_in_model_close"}) {
            models.model(where, config(parameters(where, "1")));
        }
        Path plugins = GatedPlugin.pack(directory.resolve("plugins"), TroubleBackendProvider.class);
        server = InstalledServer.serve(
                Map.of("NEREID_JAVA_OPTIONS", "-XX:MaxDirectMemorySize=512m"),
                models.directory(),
                "--backend-directory=" + plugins,
                "--backend-directory=" + InstalledServer.CHECKOUT.resolve("examples/plugins"),
                "--model-control-mode=explicit",
                "--load-model=" + OTHER,
                "--execution-watchdog-secs=1",
                "--load-watchdog-secs=1",
                "--plugin-thread-limit=200",
                "--output-check-interval=1");
        channel = Grpc.newChannelBuilder(server.address("gRPC"), InsecureChannelCredentials.create())
                .build();
    }

    @AfterAll
    static void stop() {
        if (server != null) {
            channel.shutdownNow();
            server.close();
        }
    }

    @ParameterizedTest
    @EnumSource
    void isSeenEverywhereWhileOtherModelsServe(Fault fault) throws Exception {
        load(fault.model());
        Path gate = close(fault.model());
        CompletableFuture<HttpResponse<String>> faulty = inferLater(fault.model(), fault.selector);
        if (!fault.isHeld()) {
            faulty.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        }

        Eventually.holds("not ready", TIMEOUT_SECONDS, () -> {
            if (fault.isRepeated()) { // one failure is not enough, or the thread had no processor
                infer(fault.model(), fault.selector);
            }
            return status("/v2/models/" + fault.model() + "/ready") == 400;
        });
        assertThat(status("/v2/health/ready")).isEqualTo(400);
        assertThat(status("/v2/health/live")).isEqualTo(200);
        assertThat(server.post("/v2/repository/index", "{}").body()).contains(fault.of(fault.reason));
        assertThat(server.metrics("GET", "/metrics").body())
                .containsPattern(Pattern.quote(fault.of(fault.metric)) + (fault.metric.endsWith(" ") ? "[1-9]" : "\n"));
        Eventually.holds("in the log", TIMEOUT_SECONDS, () -> entry(fault).contains(fault.frame));
        assertReported(fault);
        assertOthersServe();
        if (fault.isHoldingInstance()) {
            HttpResponse<String> behind = infer(fault.model(), 4);
            assertThat(behind.statusCode()).isEqualTo(503);
            assertThat(behind.body()).contains("Request timeout expired");
        }

        Files.delete(gate);
        if (fault.isHeld()) {
            assertThat(faulty.get(TIMEOUT_SECONDS, TimeUnit.SECONDS).statusCode())
                    .isEqualTo(200);
        }
        if (fault.isForGood()) {
            assertThat(status("/v2/models/" + fault.model() + "/ready")).isEqualTo(400);
            unload(fault.model());
            load(fault.model());
        }
        assertThat(infer(fault.model(), 4).body()).contains("[4.0]");
        Eventually.holds("ready", TIMEOUT_SECONDS, () -> status("/v2/models/" + fault.model() + "/ready") == 200);
        assertThat(status("/v2/health/ready")).isEqualTo(200);
        unload(fault.model());
    }

    /** The log names model, version and instance, or the plugin, and the stack of the guilty thread follows. */
    private static void assertReported(Fault fault) {
        String entry = entry(fault);
        assertThat(entry).contains(fault.frame);
        if (fault != Fault.THREADS) {
            assertThat(entry).contains("version=1", "instance=" + fault.model() + "_0");
        }
    }

    /** Returns the line of the log about a fault, with those after it; empty if there is none yet. */
    private static String entry(Fault fault) {
        String of = fault == Fault.THREADS ? "loader=plugin TroubleBackendProvider threads=" : "model=" + fault.model();
        return server.errSoFar()
                .lines()
                .dropWhile(line -> !(line.contains(fault.event) && line.contains(of)))
                .limit(40)
                .collect(Collectors.joining("\n"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"wait_in_close", "wait_in_model_close"})
    void aCloseThatBlocksHoldsNoUnload(String model) throws Exception {
        load(model);
        Path gate = close(model);

        unload(model);

        assertStep(model, "close", "UNLOADING");
        server.awaitErr( // written after the index shows the reason
                "close takes longer than its limit", "model=" + model);
        assertThat(status("/v2/models/" + model + "/ready")).isEqualTo(404);
        assertThat(status("/v2/health/ready")).isEqualTo(400);
        assertOthersServe();
        load("block"); // of the same plugin
        assertThat(infer("block", 4).body()).contains("[4.0]");
        unload("block");

        Files.delete(gate);
        Eventually.holds(
                "closed",
                TIMEOUT_SECONDS,
                () -> !post("/v2/repository/index", "{}").body().contains("UNLOADING"));
        assertThat(metrics()).doesNotContain("nereid_control_overdue");
        assertThat(status("/v2/health/ready")).isEqualTo(200);
    }

    @Test
    void aLoadThatBlocksHoldsNoOther() throws Exception {
        String model = "wait_in_load";
        Path gate = close(model);
        CompletableFuture<HttpResponse<String>> loading =
                later(() -> post("/v2/repository/models/" + model + "/load", "{}"));

        assertStep(model, "load", "LOADING");
        server.awaitErr("load takes longer than its limit", "model=wait_in_load version=1", "TroubledModel.of");
        assertThat(status("/v2/models/" + model + "/ready")).isEqualTo(404);
        assertThat(status("/v2/health/ready")).as("a client asked for the load").isEqualTo(200);
        assertOthersServe();
        load("block");
        assertThat(infer("block", 4).body()).contains("[4.0]");
        unload("block");

        Files.delete(gate);
        assertThat(loading.get(TIMEOUT_SECONDS, TimeUnit.SECONDS).statusCode()).isEqualTo(200);
        assertThat(infer(model, 4).body()).contains("[4.0]");
        assertThat(status("/v2/health/ready")).isEqualTo(200);
        assertThat(metrics()).doesNotContain("nereid_control_overdue");
        unload(model);
    }

    private static void assertStep(String model, String step, String state) {
        String reason = "{\"name\":\"" + model + "\",\"version\":\"1\",\"state\":\"" + state
                + "\",\"reason\":\"takes longer than 1 s to " + step + "\"";
        Eventually.holds(
                "in the index",
                TIMEOUT_SECONDS,
                () -> post("/v2/repository/index", "{}").body().contains(reason));
        assertThat(metrics())
                .contains("nereid_control_overdue{model=\"" + model + "\",step=\"" + step + "\",version=\"1\"} ");
    }

    @Test
    void aModelIsUnloadedWhenTheHolderOfItsResponsesIs() throws Exception {
        load("called");
        load("forgetful");
        infer("forgetful", TroubleBackendProvider.KEEP_RESPONSE);
        assertThat(metrics()).contains("nereid_model_responses_open{model=\"forgetful\",version=\"1\"} 1\n");

        unload("called");

        String reason = "\"reason\":\"waits for responses that are not closed: 1 held by model 'forgetful', version 1,"
                + " plugin 'trouble'\"";
        Eventually.holds("in the index", TIMEOUT_SECONDS, () -> index().contains(reason));
        server.awaitErr("unload of model 'called', version 1, waits for responses that are not closed: 1 held by");
        unload("forgetful");
        Eventually.holds("unloaded", TIMEOUT_SECONDS, () -> !index().contains("UNLOADING"));
        server.awaitErr("1 response of model 'called' was not closed, and the server released it", "TroubledModel.ask");
        assertOthersServe();
    }

    @Test
    void aModelIsUnloadedWithResponsesThatAreForgotten() throws Exception {
        load("called");
        load("forgetful");
        infer("forgetful", TroubleBackendProvider.FORGET_RESPONSE);

        unload("called");

        Eventually.holds("unloaded", TIMEOUT_SECONDS, () -> !index().contains("UNLOADING"));
        server.awaitErr("a response of model 'called' was not closed, and the server released it", "TroubledModel.ask");
        assertThat(infer("forgetful", 4).body()).contains("[4.0]");
        unload("forgetful");
        assertOthersServe();
    }

    @Test
    void memoryThatIsKeptIsReleasedWithItsModel() throws Exception {
        load("leaking");
        infer("leaking", TroubleBackendProvider.KEEP_MEMORY);
        infer("leaking", TroubleBackendProvider.KEEP_MEMORY);

        unload("leaking");

        assertForgotten("2 allocations of 2000 bytes of instance 'leaking_0' were", "them", "TroubledModel.leak");
        Eventually.holds("unloaded", TIMEOUT_SECONDS, () -> !index().contains("UNLOADING"));
        assertOthersServe();
    }

    @Test
    void memoryThatIsForgottenIsReleasedWhileItsModelServes() throws Exception {
        load("leaking");
        infer("leaking", TroubleBackendProvider.FORGET_MEMORY);

        Eventually.holds("found", TIMEOUT_SECONDS, () -> {
            collectGarbage();
            return server.errSoFar().contains("an allocation of 1000 bytes of instance 'leaking_0'");
        });

        assertForgotten("an allocation of 1000 bytes of instance 'leaking_0' was", "it", "TroubledModel.leak");
        assertThat(infer("leaking", 4).body()).contains("[4.0]");
        unload("leaking");
    }

    @Test
    void listenersThatAreKeptEndWithTheirModel() {
        load("leaking");
        infer("leaking", TroubleBackendProvider.LISTEN);
        infer("leaking", TroubleBackendProvider.LISTEN);

        unload("leaking");

        assertForgotten("2 actions of onLogLevel were", "them", "TroubledModel.listen");
    }

    /** Says so once, with the place. */
    private static void assertForgotten(String what, String released, String frame) {
        String sentence = "model 'leaking', version 1, plugin 'trouble': " + what
                + " not closed, and the server released " + released;
        assertThat(server.awaitErr(sentence, frame)).containsOnlyOnce(sentence);
    }

    private static void collectGarbage() {
        try {
            new ProcessBuilder(
                            Path.of(System.getProperty("java.home"), "bin/jcmd").toString(),
                            String.valueOf(server.pid()),
                            "GC.run")
                    .redirectErrorStream(true)
                    .start()
                    .waitFor();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Three models of one plugin are stuck at a time. */
    @Test
    void theStackOfAReportIsOfItsModel() throws Exception {
        Map<String, Integer> stuck = Map.of(
                "looping",
                TroubleBackendProvider.LOOP,
                "waiting",
                TroubleBackendProvider.WAIT,
                "deferring",
                TroubleBackendProvider.DEFER);
        List<Path> gates = new ArrayList<>();
        List<CompletableFuture<HttpResponse<String>>> requests = new ArrayList<>();
        for (String model : List.of("looping", "waiting", "deferring")) { // the deferred one is found last
            load(model);
            gates.add(close(model));
            requests.add(inferLater(model, stuck.get(model)));
            Eventually.holds("not ready", TIMEOUT_SECONDS, () -> status("/v2/models/" + model + "/ready") == 400);
        }

        Eventually.holds(
                "in the log", TIMEOUT_SECONDS, () -> stack("deferring").contains("TroubledModel.lambda$defer"));
        assertThat(stack("looping")).contains("TroubledModel.loop").doesNotContain("TroubledModel.await");
        assertThat(stack("waiting")).contains("TroubledModel.await").doesNotContain("TroubledModel.loop");
        assertThat(stack("deferring")).doesNotContain("TroubledModel.loop", "instance/waiting");

        for (Path gate : gates) {
            Files.delete(gate);
        }
        for (CompletableFuture<HttpResponse<String>> request : requests) {
            assertThat(request.get(TIMEOUT_SECONDS, TimeUnit.SECONDS).statusCode())
                    .isEqualTo(200);
        }
        stuck.keySet().forEach(MisbehaviorIT::unload);
    }

    /** Returns the line of the log that an execution of a model takes too long, and the stack that follows. */
    private static String stack(String model) {
        List<String> lines = server.errSoFar()
                .lines()
                .dropWhile(line -> !(line.contains("takes longer than its limit") && line.contains("model=" + model)))
                .toList();
        Stream<String> stack = lines.stream().skip(1).takeWhile(line -> !line.contains(" WARN "));
        return Stream.concat(lines.stream().limit(1), stack).collect(Collectors.joining("\n"));
    }

    @ParameterizedTest
    @EnumSource
    void outputsThatDoNotFitAreToldOnce(Wrong wrong) throws Exception {
        load(wrong.model());
        for (int i = 0; i < 3; i++) {
            assertThat(infer(wrong.model(), wrong.selector).statusCode()).isEqualTo(200);
        }

        assertThat(server.awaitErr(wrong.output))
                .satisfies(log -> assertThat(log.lines()
                                .filter(line -> line.contains("model=" + wrong.model()) && line.contains(wrong.output)))
                        .singleElement()
                        .asString()
                        .contains("WARN", wrong.event));
        unload(wrong.model());
    }

    @ParameterizedTest
    @CsvSource({TroubleBackendProvider.KEEP_SENDER + ",senders", TroubleBackendProvider.KEEP_LEASE + ",leases on inputs"
    })
    void aModelIsUnloadedWhenItsPluginEndsWhatItKeeps(int selector, String what) throws Exception {
        load("forgetful");
        load("keeper");
        assertThat(infer("keeper", selector).body()).contains("[" + selector + ".0]");

        unload("keeper");

        String reason = "\"reason\":\"waits for " + what + " that are not ended: 1 of plugin 'trouble'\"";
        Eventually.holds("in the index", TIMEOUT_SECONDS, () -> index().contains(reason));
        assertOthersServe();
        infer("forgetful", TroubleBackendProvider.END_KEPT);
        Eventually.holds("unloaded", TIMEOUT_SECONDS, () -> !index().contains("UNLOADING"));
        assertThat(server.errSoFar()).doesNotContain("model 'keeper', version 1, plugin 'trouble': a");
        unload("forgetful");
    }

    @Test
    void aRequestFailsWithASenderThatIsForgotten() throws Exception {
        load("forgetful");
        CompletableFuture<HttpResponse<String>> forgotten =
                inferLater("forgetful", TroubleBackendProvider.FORGET_SENDER);
        assertThat(infer("forgetful", TroubleBackendProvider.FORGET_LEASE).body())
                .contains("[" + TroubleBackendProvider.FORGET_LEASE + ".0]");
        assertOthersServe();

        unload("forgetful");

        HttpResponse<String> response = forgotten.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        assertThat(response.statusCode()).isEqualTo(500);
        assertThat(response.body()).contains("model 'forgetful': its plugin forgot the sender of the request");
        Eventually.holds("unloaded", TIMEOUT_SECONDS, () -> !index().contains("UNLOADING"));
        server.awaitErr("a sender of a request was not ended, and the server ended it", "TroubledModel.execute");
        server.awaitErr("a lease on the inputs of a request was not ended, and the server ended it");
        load("forgetful");
        assertThat(infer("forgetful", 4).body()).contains("[4.0]");
        unload("forgetful");
        assertOthersServe();
    }

    private static String index() {
        return post("/v2/repository/index", "{}").body();
    }

    @Test
    void aModelThatIsStuckIsUnloadedAndLoadedAgain() throws Exception {
        load("block");
        Path gate = close("block");
        CompletableFuture<HttpResponse<String>> stuck = inferLater("block", TroubleBackendProvider.WAIT);
        Eventually.holds("stuck", TIMEOUT_SECONDS, () -> status("/v2/models/block/ready") == 400);

        unload("block");
        load("block");

        assertThat(infer("block", 4).body()).contains("[4.0]");
        assertThat(status("/v2/models/block/ready")).isEqualTo(200);
        assertOthersServe();
        Files.delete(gate);
        assertThat(stuck.get(TIMEOUT_SECONDS, TimeUnit.SECONDS).statusCode()).isEqualTo(200);
        unload("block");
    }

    @Test
    void theDocumentNamesWhatIsSeenAndNothingElse() throws IOException {
        String page = Files.readString(PAGE).replaceAll("\\s+", " ");

        for (Fault fault : Fault.values()) {
            assertThat(page).contains(fault.event);
            assertThat(page).contains(fault.metric.substring(0, fault.metric.indexOf('{')));
            String reason =
                    fault.reason.replaceAll("1 s: .*|: %s_0", "").replaceAll("TroubleBackendProvider|OUTPUT0", "NAME");
            assertThat(page).contains(reason);
        }
        Set<String> named = Pattern.compile("nereid_[a-z_]+[a-z]")
                .matcher(page)
                .results()
                .map(MatchResult::group)
                .collect(Collectors.toSet());
        Set<String> seen = Stream.of(Fault.values())
                .map(fault -> fault.metric.substring(0, fault.metric.indexOf('{')))
                .collect(Collectors.toSet());
        seen.addAll(Set.of("nereid_control_overdue", "nereid_execution_overdue_total", "nereid_model_responses_open"));
        assertThat(named).isEqualTo(seen);
        assertThat(metrics()).contains("nereid_execution_overdue_total{");
    }

    private static void assertOthersServe() throws Exception {
        GRPCInferenceServiceBlockingStub grpc =
                GRPCInferenceServiceGrpc.newBlockingStub(channel).withDeadlineAfter(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        for (int i = 1; i <= 20; i++) {
            assertThat(infer(OTHER, i).body()).contains("[" + i + ".0]");
            assertThat(grpc.modelInfer(ClientRequest.of(OTHER)
                                    .input("INPUT0", "FP32", floats(i), 1)
                                    .overGrpc())
                            .getRawOutputContents(0)
                            .toByteArray())
                    .isEqualTo(floats(i));
        }
        assertThat(status("/v2/models/" + OTHER + "/ready")).isEqualTo(200);
    }

    private static Path close(String model) throws IOException {
        return Files.createFile(models.directory().resolve(model).resolve("gate"));
    }

    private static void load(String model) {
        assertThat(post("/v2/repository/models/" + model + "/load", "{}").statusCode())
                .as("load of " + model)
                .isEqualTo(200);
    }

    private static void unload(String model) {
        assertThat(post("/v2/repository/models/" + model + "/unload", "{}").statusCode())
                .as("unload of " + model)
                .isEqualTo(200);
    }

    private static HttpResponse<String> infer(String model, int first) {
        return post(
                "/v2/models/" + model + "/infer",
                "{\"id\":\"seven\",\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":["
                        + first + "]}]}");
    }

    private static CompletableFuture<HttpResponse<String>> inferLater(String model, int first) {
        return later(() -> infer(model, first));
    }

    private static CompletableFuture<HttpResponse<String>> later(Supplier<HttpResponse<String>> request) {
        return CompletableFuture.supplyAsync(request, InstalledServer.BLOCKING);
    }

    private static int status(String path) {
        try {
            return server.get(path).statusCode();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static HttpResponse<String> post(String path, String body) {
        try {
            return server.post(path, body);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String metrics() {
        try {
            return server.metrics("GET", "/metrics").body();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String parameters(String key, String value) {
        return "parameters { key: \"" + key + "\" value { string_value: \"" + value + "\" } }";
    }

    private static String config(String more) {
        return Repository.identity(0, "FP32", "[ -1 ]", more).replace("\"identity\"", "\"trouble\"");
    }
}
