package dev.nereid.grpc.testing;

import com.google.protobuf.ByteString;
import dev.nereid.grpc.wire.MessageBytes;
import inference.InferParameter;
import inference.InferTensorContents;
import inference.ModelInferRequest;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;

/** Generates random requests and splits their bytes. Immutable. */
public final class TestMessages {
    private TestMessages() {}

    public static Arbitrary<String> texts() {
        return Arbitraries.strings().ofMaxLength(6);
    }

    public static Arbitrary<ByteString> bytes() {
        return Arbitraries.bytes().array(byte[].class).ofMaxSize(40).map(ByteString::copyFrom);
    }

    static Arbitrary<InferParameter> parameters() {
        return Arbitraries.oneOf(
                Arbitraries.just(InferParameter.getDefaultInstance()),
                Arbitraries.of(true, false)
                        .map(flag ->
                                InferParameter.newBuilder().setBoolParam(flag).build()),
                Arbitraries.longs()
                        .map(number -> InferParameter.newBuilder()
                                .setInt64Param(number)
                                .build()),
                texts().map(text ->
                        InferParameter.newBuilder().setStringParam(text).build()),
                Arbitraries.doubles()
                        .map(number -> InferParameter.newBuilder()
                                .setDoubleParam(number)
                                .build()),
                Arbitraries.longs()
                        .map(number -> InferParameter.newBuilder()
                                .setUint64Param(number)
                                .build()));
    }

    static Arbitrary<InferTensorContents> contents() {
        return Combinators.combine(
                        Arbitraries.of(true, false).list().ofMaxSize(3),
                        Arbitraries.integers().list().ofMaxSize(3),
                        Arbitraries.longs().list().ofMaxSize(3),
                        Arbitraries.floats().list().ofMaxSize(3),
                        Arbitraries.doubles().list().ofMaxSize(3),
                        bytes().list().ofMaxSize(3))
                .as((bools, ints, longs, floats, doubles, strings) -> InferTensorContents.newBuilder()
                        .addAllBoolContents(bools)
                        .addAllIntContents(ints)
                        .addAllUintContents(ints)
                        .addAllInt64Contents(longs)
                        .addAllUint64Contents(longs)
                        .addAllFp32Contents(floats)
                        .addAllFp64Contents(doubles)
                        .addAllBytesContents(strings)
                        .build());
    }

    private static Arbitrary<ModelInferRequest.InferInputTensor> inputs() {
        return Combinators.combine(
                        texts(),
                        texts(),
                        Arbitraries.longs().list().ofMaxSize(12),
                        Arbitraries.maps(texts(), parameters()).ofMaxSize(2),
                        contents().optional())
                .as((name, type, shape, parameters, contents) -> {
                    var input = ModelInferRequest.InferInputTensor.newBuilder()
                            .setName(name)
                            .setDatatype(type)
                            .addAllShape(shape)
                            .putAllParameters(parameters);
                    contents.ifPresent(input::setContents);
                    return input.build();
                });
    }

    private static Arbitrary<ModelInferRequest.InferRequestedOutputTensor> outputs() {
        return Combinators.combine(
                        texts(), Arbitraries.maps(texts(), parameters()).ofMaxSize(2))
                .as((name, parameters) -> ModelInferRequest.InferRequestedOutputTensor.newBuilder()
                        .setName(name)
                        .putAllParameters(parameters)
                        .build());
    }

    public static Arbitrary<ModelInferRequest> requests() {
        return Combinators.combine(
                        texts().list().ofSize(3),
                        Arbitraries.maps(texts(), parameters()).ofMaxSize(3),
                        inputs().list().ofMaxSize(3),
                        outputs().list().ofMaxSize(3),
                        bytes().list().ofMaxSize(3))
                .as((texts, parameters, inputs, outputs, raw) -> ModelInferRequest.newBuilder()
                        .setModelName(texts.get(0))
                        .setModelVersion(texts.get(1))
                        .setId(texts.get(2))
                        .putAllParameters(parameters)
                        .addAllInputs(inputs)
                        .addAllOutputs(outputs)
                        .addAllRawInputContents(raw)
                        .build());
    }

    /** Cuts bytes into direct buffers at the given places. */
    public static MessageBytes cut(byte[] bytes, List<Integer> places) {
        List<Integer> cuts = new ArrayList<>(places);
        cuts.replaceAll(place -> bytes.length == 0 ? 0 : Math.floorMod(place, bytes.length));
        cuts.add(bytes.length);
        Collections.sort(cuts);
        ByteBuffer all = ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
        List<ByteBuffer> pieces = new ArrayList<>();
        int start = 0;
        for (int end : cuts) {
            if (end > start) {
                pieces.add(all.slice(start, end - start));
            }
            start = end;
        }
        return MessageBytes.of(pieces);
    }

    /**
     * Returns whether bytes may hold a number of more than ten bytes. The generated classes accept some of those, which
     * the format forbids and the reference server refuses.
     */
    public static boolean mayHoldLongNumber(byte[] bytes) {
        int run = 0;
        for (byte next : bytes) {
            run = next < 0 ? run + 1 : 0;
            if (run == 10) {
                return true;
            }
        }
        return false;
    }
}
