package dev.nereid.scheduler.cache;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelVersion;
import dev.nereid.scheduler.request.RequestInputs;
import dev.nereid.scheduler.request.RequestOutputs;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Random;
import java.util.TreeMap;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import org.junit.jupiter.api.Test;

/** Requests of one key are equal. Names and contents are drawn from few, so that parts often look alike. */
final class CacheKeyDigestProperties {
    @Property(tries = 2000)
    void onlyEqualRequestsHaveEqualKeys(@ForAll("requests") Request one, @ForAll("requests") Request other) {
        assertThat(CacheKeyDigest.of(one.request("1"), "load").equals(CacheKeyDigest.of(other.request("2"), "load")))
                .isEqualTo(one.equals(other));
    }

    @Property(tries = 200)
    void theOrderOfInputsIdAndTimesDoNotMatter(@ForAll("requests") Request request, @ForAll Random random) {
        List<Input> inputs = new ArrayList<>(request.inputs.entrySet().stream()
                .map(entry -> entry.getValue().named(entry.getKey()))
                .toList());
        Collections.shuffle(inputs, random);
        CheckedRequest shuffled = request.request(
                "other",
                inputs,
                new RequestOptions(request.priority, 17, OptionalLong.of(random.nextLong()), Optional.empty()));

        assertThat(CacheKeyDigest.of(shuffled, "load")).isEqualTo(CacheKeyDigest.of(request.request(""), "load"));
    }

    /** Instances of a server, and servers of one Redis, must agree on keys: change this only with the layout. */
    @Test
    void isTheSameEverywhere() {
        Request request = new Request(
                "m",
                1,
                Map.of("IN", new Input("", DataType.INT8, List.of(2L), List.of(1, 2))),
                List.of("OUT"),
                2,
                Map.of("p", new ParameterValue.Int(5)));

        assertThat(CacheKeyDigest.of(request.request(""), "load").text()).isEqualTo("4fc715b40b0761c6176c5e2ed6ddfa66");
    }

    /** A reload of a version must not answer with what an earlier load computed. */
    @Property(tries = 50)
    void differsBetweenLoads(@ForAll("requests") Request request) {
        assertThat(CacheKeyDigest.of(request.request(""), "load"))
                .isNotEqualTo(CacheKeyDigest.of(request.request(""), "reload"));
    }

    /** Longer than what the digest is shown at a time. */
    @Test
    void readsLargeInputsToTheEnd() {
        MemorySegment data = Arena.ofAuto().allocate((1 << 20) + 3);
        CheckedRequest request = of(data);
        String before = CacheKeyDigest.of(request, "load").text();
        data.set(ValueLayout.JAVA_BYTE, data.byteSize() - 1, (byte) 1);

        assertThat(CacheKeyDigest.of(request, "load").text()).isNotEqualTo(before);
    }

    private static CheckedRequest of(MemorySegment data) {
        Tensor tensor = Tensor.of(DataType.UINT8, Shape.of(data.byteSize()), data);
        return new CheckedRequest(
                new ModelVersion("m", 1),
                "",
                RequestInputs.of(List.of(new NamedTensor("IN", tensor)), 1, () -> {}),
                RequestOutputs.all(List.of("OUT")),
                Map.of(),
                RequestOptions.DEFAULT,
                0);
    }

    @Provide
    Arbitrary<Request> requests() {
        Arbitrary<String> names = Arbitraries.of("", "a", "b", "ab", "\u0001", "é");
        Arbitrary<Input> inputs = Combinators.combine(
                        Arbitraries.of(DataType.INT8, DataType.UINT8),
                        Arbitraries.of(List.of(2L), List.of(1L, 2L), List.of(2L, 1L), List.of(1L)),
                        Arbitraries.of(0, 1).list().ofSize(2))
                .as((type, dims, bytes) ->
                        new Input("", type, dims, dims.equals(List.of(1L)) ? bytes.subList(0, 1) : bytes));
        Arbitrary<ParameterValue> parameters = Arbitraries.of(
                new ParameterValue.Bool(true),
                new ParameterValue.Int(1),
                new ParameterValue.Int(-1),
                new ParameterValue.Real(1),
                new ParameterValue.Real(-0.0),
                new ParameterValue.Text("1"),
                new ParameterValue.Text(""));
        return Combinators.combine(
                        Arbitraries.of("m", "ma"),
                        Arbitraries.of(1L, 2L),
                        Arbitraries.maps(names, inputs).ofMaxSize(2),
                        names.list().ofMaxSize(2),
                        Arbitraries.of(0L, 1L, -1L),
                        Arbitraries.maps(names, parameters).ofMaxSize(2))
                .as(Request::new);
    }

    /** An input in a form that is compared by content. The name is empty where a map has it. */
    record Input(String name, DataType type, List<Long> dims, List<Integer> bytes) {
        Input named(String other) {
            return new Input(other, type, dims, bytes);
        }

        NamedTensor tensor() {
            byte[] content = new byte[bytes.size()];
            for (int i = 0; i < content.length; i++) {
                content[i] = bytes.get(i).byteValue();
            }
            MemorySegment data = Arena.ofAuto().allocate(content.length).copyFrom(MemorySegment.ofArray(content));
            Shape shape = Shape.of(dims.stream().mapToLong(Long::longValue).toArray());
            return new NamedTensor(name, Tensor.of(type, shape, data));
        }
    }

    /** The content that a key identifies. */
    record Request(
            String model,
            long version,
            Map<String, Input> inputs,
            List<String> outputs,
            long priority,
            Map<String, ParameterValue> parameters) {
        CheckedRequest request(String id) {
            List<Input> named = new TreeMap<>(inputs)
                    .entrySet().stream()
                            .map(entry -> entry.getValue().named(entry.getKey()))
                            .toList();
            return request(id, named, new RequestOptions(priority, 0, OptionalLong.empty(), Optional.empty()));
        }

        CheckedRequest request(String id, List<Input> order, RequestOptions options) {
            List<NamedTensor> tensors = order.stream().map(Input::tensor).toList();
            return new CheckedRequest(
                    new ModelVersion(model, version),
                    id,
                    RequestInputs.of(tensors, 1, () -> {}),
                    RequestOutputs.all(outputs),
                    parameters,
                    options,
                    0);
        }
    }
}
