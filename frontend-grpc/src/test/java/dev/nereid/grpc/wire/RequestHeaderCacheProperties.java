package dev.nereid.grpc.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.protobuf.ByteString;
import dev.nereid.api.InferenceException;
import dev.nereid.grpc.testing.TestMessages;
import inference.InferParameter;
import inference.InferTensorContents;
import inference.ModelInferRequest;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.ShrinkingMode;
import net.jqwik.api.Tuple;

/** Tests that cached headers never change what a message says. */
final class RequestHeaderCacheProperties {
    private final RequestHeaderCache cache = new RequestHeaderCache();

    /** Requests that resemble each other, so that many of their headers are cached. */
    @Provide
    Arbitrary<ModelInferRequest> requests() {
        Arbitrary<String> names = Arbitraries.of("", "a", "b", "\u00e9", "\ud83d\ude00");
        Arbitrary<ModelInferRequest.InferInputTensor> inputs = Combinators.combine(
                        names, names, Arbitraries.longs().between(-1, 2).list().ofMaxSize(2))
                .as((name, type, shape) -> ModelInferRequest.InferInputTensor.newBuilder()
                        .setName(name)
                        .setDatatype(type)
                        .addAllShape(shape)
                        .build());
        Arbitrary<ModelInferRequest> plain = Combinators.combine(
                        names,
                        names,
                        inputs.list().ofMaxSize(2),
                        names.list().ofMaxSize(1),
                        TestMessages.bytes().list().ofMaxSize(3))
                .as((model, version, tensors, outputs, raw) -> {
                    ModelInferRequest.Builder request = ModelInferRequest.newBuilder()
                            .setModelName(model)
                            .setModelVersion(version)
                            .addAllInputs(tensors)
                            .addAllRawInputContents(raw);
                    outputs.forEach(name -> request.addOutputsBuilder().setName(name));
                    return request.build();
                });
        return Arbitraries.frequencyOf(Tuple.of(4, plain), Tuple.of(1, TestMessages.requests()));
    }

    @Provide
    Arbitrary<List<ModelInferRequest>> conversations() {
        return requests().list().ofMinSize(1).ofMaxSize(20);
    }

    @Provide
    Arbitrary<List<Integer>> cuts() {
        return Arbitraries.integers().greaterOrEqual(0).list().ofMaxSize(3);
    }

    @Property(tries = 300, shrinking = ShrinkingMode.OFF)
    void readsWhatTheGeneratedClassWrote(
            @ForAll("conversations") List<ModelInferRequest> requests, @ForAll("cuts") List<Integer> cuts)
            throws IOException {
        for (int round = 0; round < 3; round++) {
            for (ModelInferRequest request : requests) {
                assertThat(read(request.toByteArray(), cuts)).isEqualTo(request);
            }
        }
    }

    @Property(tries = 2000, shrinking = ShrinkingMode.OFF)
    void agreesWithTheReaderAboutGarbledMessages(
            @ForAll("requests") ModelInferRequest request,
            @ForAll("cuts") List<Integer> cuts,
            @ForAll int place,
            @ForAll byte value,
            @ForAll boolean truncated)
            throws IOException {
        byte[] bytes = request.toByteArray();
        byte[] garbled = bytes.clone();
        if (bytes.length > 0) {
            garbled[Math.floorMod(place, bytes.length)] = value;
            garbled = truncated ? Arrays.copyOf(garbled, Math.floorMod(value, bytes.length)) : garbled;
        }

        assertThat(read(bytes, cuts)).isEqualTo(request);
        assertThat(read(bytes, cuts)).isEqualTo(request);
        assertThat(outcome(cache, garbled, cuts)).isEqualTo(outcome(new RequestHeaderCache(), garbled, cuts));
        assertThat(outcome(cache, garbled, cuts)).isEqualTo(withoutMemory(garbled, cuts));
        assertThat(read(bytes, cuts)).isEqualTo(request);
    }

    private static Optional<ModelInferRequest> outcome(RequestHeaderCache cache, byte[] bytes, List<Integer> cuts)
            throws IOException {
        try {
            return Optional.of(InferMessageReaderProperties.generated(cache.read(TestMessages.cut(bytes, cuts))));
        } catch (InferenceException | IOException _) {
            return Optional.empty();
        }
    }

    private static Optional<ModelInferRequest> withoutMemory(byte[] bytes, List<Integer> cuts) throws IOException {
        try {
            return Optional.of(
                    InferMessageReaderProperties.generated(InferMessageReader.read(TestMessages.cut(bytes, cuts))));
        } catch (InferenceException | IOException _) {
            return Optional.empty();
        }
    }

    private ModelInferRequest read(byte[] bytes, List<Integer> cuts) throws IOException {
        return InferMessageReaderProperties.generated(cache.read(TestMessages.cut(bytes, cuts)));
    }

    private InferMessage read(ModelInferRequest.Builder request) {
        return read(cache, request);
    }

    private static InferMessage read(RequestHeaderCache cache, ModelInferRequest.Builder request) {
        return cache.read(TestMessages.cut(request.build().toByteArray(), List.of()));
    }

    private static ModelInferRequest.Builder request() {
        ModelInferRequest.Builder request = ModelInferRequest.newBuilder().setModelName("identity");
        request.addInputsBuilder().setName("INPUT0").setDatatype("UINT8").addShape(3);
        return request.addRawInputContents(ByteString.copyFromUtf8("one"));
    }

    /** Checks that the second of two requests is not parsed after the first one was read twice. */
    private void assertCached(ModelInferRequest.Builder first, ModelInferRequest.Builder second) {
        read(first);
        List<?> cached = read(first).inputs();
        assertThat(read(second).inputs()).isSameAs(cached);
    }

    /** Checks that a request is parsed whenever it is read. */
    private void assertNotCached(ModelInferRequest.Builder request) {
        read(request);
        assertThat(read(request).inputs()).isNotSameAs(read(request).inputs());
    }

    @Example
    void matchesHeadersWhateverTheTensors() {
        ModelInferRequest.Builder other = request().clearRawInputContents();
        other.addRawInputContents(ByteString.copyFrom(new byte[10_000]));

        assertCached(request(), request());
        assertCached(request(), other);
    }

    @Example
    void cachesAHeaderSeenTwice() {
        List<?> first = read(request()).inputs();
        List<?> second = read(request()).inputs();

        assertThat(second).isNotSameAs(first);
        assertThat(read(request()).inputs()).isSameAs(second);
    }

    @Example
    void doesNotCacheHeadersSeenOnce() {
        read(request());
        List<?> cached = read(request()).inputs();

        for (int model = 0; model < 1_000; model++) {
            read(request().setModelName("once" + model));
        }

        assertThat(read(request()).inputs()).isSameAs(cached);
    }

    @Example
    void keepsAHeaderWhileAnotherIsReadBetween() {
        ModelInferRequest.Builder rival = rival();
        read(request());
        List<?> cached = read(request()).inputs();

        for (int round = 0; round < 3; round++) {
            read(rival);

            assertThat(read(request()).inputs()).isSameAs(cached);
        }
        read(rival);
        read(rival);
        assertThat(read(request()).inputs())
                .as("the rival was read twice in a row")
                .isNotSameAs(cached);
    }

    /** Finds a request whose header has the same place in the cache. */
    @SuppressWarnings("ReferenceEquality") // Inputs that are the same list were not read again.
    private static ModelInferRequest.Builder rival() {
        return IntStream.range(0, 10_000)
                .mapToObj(model -> request().setModelName("rival" + model))
                .filter(candidate -> {
                    RequestHeaderCache cache = new RequestHeaderCache();
                    read(cache, request());
                    List<?> cached = read(cache, request()).inputs();
                    read(cache, candidate);
                    read(cache, candidate);
                    return read(cache, request()).inputs() != cached;
                })
                .findFirst()
                .orElseThrow();
    }

    @Example
    void distinguishesModelsVersionsShapesAndOutputs() throws IOException {
        List<ModelInferRequest.Builder> requests = new ArrayList<>();
        requests.add(request());
        requests.add(request().setModelName("identitx"));
        requests.add(request().setModelVersion("1"));
        requests.add(request());
        requests.getLast().getInputsBuilder(0).setShape(0, 4);
        requests.add(request());
        requests.getLast().getInputsBuilder(0).setDatatype("UINT9");
        requests.add(request());
        requests.getLast().addOutputsBuilder().setName("OUTPUT0");

        for (int round = 0; round < 3; round++) {
            for (ModelInferRequest.Builder request : requests) {
                assertThat(read(request.build().toByteArray(), List.of())).isEqualTo(request.build());
            }
        }
    }

    @Example
    void cachesNoHeadersWithIdsOrParameters() {
        ModelInferRequest.Builder contents = request().clearRawInputContents();
        contents.getInputsBuilder(0)
                .setContents(InferTensorContents.newBuilder().addUintContents(1));
        InferParameter one = InferParameter.newBuilder().setInt64Param(1).build();
        ModelInferRequest.Builder shared = request();
        shared.getInputsBuilder(0).putParameters("shared_memory_offset", one);
        ModelInferRequest.Builder classified = request();
        classified.addOutputsBuilder().setName("OUTPUT0").putParameters("classification", one);

        assertNotCached(request().setId("1"));
        assertNotCached(request().putParameters("priority", one));
        assertNotCached(contents);
        assertNotCached(shared);
        assertNotCached(classified);
    }

    @Example
    void cachesNoLongHeadersAndNoneOfManyTensors() {
        ModelInferRequest.Builder many = request();
        for (int i = 0; i < 40; i++) {
            many.addOutputsBuilder().setName("" + i);
        }

        ModelInferRequest.Builder fitting = request().setModelName("m".repeat(1_900));
        assertCached(fitting, fitting);
        assertNotCached(request().setModelName("m".repeat(2_100)));
        assertNotCached(many);
    }

    @Example
    void readsFieldsBehindTheTensors() throws IOException {
        byte[] cached = request().build().toByteArray();
        ModelInferRequest more = ModelInferRequest.newBuilder()
                .setModelName("other")
                .setId("7")
                .addRawInputContents(ByteString.copyFromUtf8("two"))
                .build();
        byte[] both =
                request().build().toByteString().concat(more.toByteString()).toByteArray();

        for (int round = 0; round < 3; round++) {
            assertThat(read(cached, List.of())).isEqualTo(request().build());
            assertThat(read(both, List.of())).isEqualTo(ModelInferRequest.parseFrom(both));
        }
    }

    @Example
    void readsAsManyTensorsAsThereAre() throws IOException {
        for (int tensors = 0; tensors < 4; tensors++) {
            ModelInferRequest.Builder request = request().clearRawInputContents();
            for (int i = 0; i < tensors; i++) {
                request.addRawInputContents(ByteString.copyFromUtf8("tensor " + i));
            }
            assertThat(read(request().build().toByteArray(), List.of()))
                    .isEqualTo(request().build());
            assertThat(read(request.build().toByteArray(), List.of())).isEqualTo(request.build());
        }
    }

    @Example
    void refusesTensorsThatEndTooSoon() throws IOException {
        byte[] bytes = request().build().toByteArray();
        for (int round = 0; round < 3; round++) {
            assertThat(read(bytes, List.of())).isEqualTo(request().build());
        }

        byte[] cut = Arrays.copyOf(bytes, bytes.length - 1);
        assertThatThrownBy(() -> cache.read(TestMessages.cut(cut, List.of())))
                .isInstanceOf(InferenceException.class)
                .hasMessage("Unable to parse request");
    }

    @Example
    void readsMoreHeadersThanItCaches() throws IOException {
        for (int round = 0; round < 2; round++) {
            for (int model = 0; model < 1_000; model++) {
                ModelInferRequest request = request().setModelName("m" + model).build();
                for (int time = 0; time < 3; time++) {
                    assertThat(read(request.toByteArray(), List.of())).isEqualTo(request);
                }
            }
        }
    }
}
