package dev.nereid.http.infer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.OutputTarget;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Valid and invalid bodies of inference requests. */
class InferRequestReaderTest {
    private static final String INPUT = "{'name':'X','shape':[1,4],'datatype':'FP32','data':[1,2,3,4]}";
    private static final String BINARY =
            "{'name':'X','shape':[1,4],'datatype':'FP32','parameters':{'binary_data_size':%s}}";
    private static final long LIMIT = 1000;

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeInferenceServer server = new FakeInferenceServer(memory);
    private final RequestMemory requestMemory = new RequestMemory(memory, server.sharedMemory());

    @AfterEach
    void releaseMemory() {
        requestMemory.run();
    }

    @Test
    void readsJsonInputs() {
        InferRequestBody request = read("{'id':'a','inputs':[" + INPUT + "]}");

        InputTensor input = request.inputs().getFirst();
        assertThat(request.id()).isEqualTo("a");
        assertThat(input.name()).isEqualTo("X");
        assertThat(input.datatype()).isEqualTo("FP32");
        assertThat(input.dims()).containsExactly(1, 4);
        assertThat(input.data().toArray(ValueLayout.JAVA_FLOAT)).containsExactly(1, 2, 3, 4);
        assertThat(request.outputs().requested()).isEmpty();
        assertThat(request.outputs().format("Y")).isEqualTo(RequestedOutputs.Format.JSON);
    }

    @Test
    void readsMembersInAnyOrder() {
        InferRequestBody request = read(
                "{'outputs':[{'parameters':{},'name':'Y'}],'parameters':{'p':1},'inputs':[{'data':[[1,2],"
                        + "[[3],4]],'datatype':'INT8','shape':[2,2],'name':'X','extra':[{}]}],'other':{'inputs':[]},'id':'z'}");

        assertThat(request.inputs().getFirst().data().toArray(ValueLayout.JAVA_BYTE))
                .containsExactly(1, 2, 3, 4);
        assertThat(request.id()).isEqualTo("z");
        assertThat(request.outputs().requested())
                .extracting(RequestedOutput::name)
                .containsExactly("Y");
    }

    @Test
    void viewsBinaryInputsInTheirOrder() {
        String json = "{'inputs':[{'name':'A','shape':[2],'datatype':'INT8','parameters':{'binary_data_size':2}},"
                + "{'name':'B','shape':[1],'datatype':'INT8','data':[7]},"
                + "{'name':'C','shape':[3],'datatype':'INT8','parameters':{'binary_data_size':3}}]}";

        InferRequestBody request = read(json, new byte[] {1, 2, 3, 4, 5});

        assertThat(request.inputs().get(0).data().toArray(ValueLayout.JAVA_BYTE))
                .containsExactly(1, 2);
        assertThat(request.inputs().get(1).data().toArray(ValueLayout.JAVA_BYTE))
                .containsExactly(7);
        assertThat(request.inputs().get(2).data().toArray(ValueLayout.JAVA_BYTE))
                .containsExactly(3, 4, 5);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "BOOL | [true,false] | 01 00",
                "UINT8 | [0,255] | 00 ff",
                "INT8 | [-128,127] | 80 7f",
                "UINT16 | [258,65535] | 02 01 ff ff",
                "INT16 | [-32768,32767] | 00 80 ff 7f",
                "UINT32 | [1,4294967295] | 01 00 00 00 ff ff ff ff",
                "INT32 | [-2147483648,1] | 00 00 00 80 01 00 00 00",
                "UINT64 | [18446744073709551615,1] | ff ff ff ff ff ff ff ff 01 00 00 00 00 00 00 00",
                "INT64 | [-9223372036854775808,-1] | 00 00 00 00 00 00 00 80 ff ff ff ff ff ff ff ff",
                "FP16 | [1,-0.1] | 00 3c 66 ae",
                "BF16 | [1,-2.5] | 80 3f 20 c0",
                "FP32 | [0.1,-Infinity] | cd cc cc 3d 00 00 80 ff",
                "FP64 | [1,NaN] | 00 00 00 00 00 00 f0 3f 00 00 00 00 00 00 f8 7f",
                "BYTES | ['a','h\\u00e9\\ud83d\\ude00'] | 01 00 00 00 61 07 00 00 00 68 c3 a9 f0 9f 98 80",
            })
    void readsEveryDatatype(String datatype, String data, String expected) {
        InferRequestBody request = read(input(datatype, "[2]", data));

        assertThat(hex(request.inputs().getFirst().data())).isEqualTo(expected);
    }

    @Test
    void keepsStringsOfAnyBytes() {
        byte[] body = json(input("BYTES", "[1]", "['\u00ff\u00fe']")).getBytes(StandardCharsets.ISO_8859_1);

        InferRequestBody request =
                reader(MemorySegment.ofArray(body), body.length).read();

        assertThat(hex(request.inputs().getFirst().data())).isEqualTo("02 00 00 00 ff fe");
    }

    @ParameterizedTest
    @ValueSource(strings = {"[1]", "[[],[1]]", "[\"a\"]", "[{}]"})
    void refusesDataForAnEmptyShape(String data) {
        assertThatThrownBy(() -> read(input("FP32", "[1,0]", data.replace('"', '\''))))
                .isInstanceOf(InferenceException.class)
                .hasMessageStartingWith("Unable to parse 'data': Shape does not match true shape of 'data' field");
    }

    @Test
    void readsNoDataForShapesWithoutElements() {
        assertThat(read(input("FP32", "[1,0]", "[]")).inputs().getFirst().data().byteSize())
                .isZero();
        assertThat(read(input("FP32", "[0,4]", "[1,2,3,4]"))
                        .inputs()
                        .getFirst()
                        .data()
                        .byteSize())
                .isZero();
    }

    @Test
    void readsAScalarAndLeavesAMissingShapeToTheServer() {
        assertThat(read(input("INT16", "[]", "[5]")).inputs().getFirst().data().byteSize())
                .isEqualTo(2);
        assertThat(read(input("INT16", "[]", "[5,6]"))
                        .inputs()
                        .getFirst()
                        .data()
                        .byteSize())
                .isZero();
    }

    @Test
    void sortsParameters() {
        InferRequestBody request = read("{'parameters':{'s':'x','i':-3,'b':true,'r':1.5,'big':9223372036854775808,"
                + "'sequence_id':5,'sequence_start':true,'sequence_end':false,'priority':18446744073709551615,"
                + "'timeout':7,'binary_data_output':true},'inputs':[" + INPUT + "]}");

        assertThat(request.parameters())
                .containsEntry("s", new ParameterValue.Text("x"))
                .containsEntry("i", new ParameterValue.Int(-3))
                .containsEntry("b", new ParameterValue.Bool(true))
                .containsEntry("r", new ParameterValue.Real(1.5))
                .containsEntry("big", new ParameterValue.Real(0x1p63))
                .hasSize(5);
        assertThat(request.options().priority()).isEqualTo(-1);
        assertThat(request.options().timeoutMicros()).isEqualTo(7);
        assertThat(request.options().sequence()).contains(new Sequence(new Sequence.Id.Numeric(5), true, false));
        assertThat(request.outputs().format("Y")).isEqualTo(RequestedOutputs.Format.BINARY);
    }

    @Test
    void acceptsStringsAsSequenceIds() {
        assertThat(read("{'parameters':{'sequence_id':'s'},'inputs':[]}")
                        .options()
                        .sequence())
                .contains(new Sequence(new Sequence.Id.Text("s"), false, false));
        assertThat(read("{'parameters':{'sequence_id':0},'inputs':[]}")
                        .options()
                        .sequence())
                .isEmpty();
        assertThat(read("{'parameters':{'sequence_id':''},'inputs':[]}")
                        .options()
                        .sequence())
                .isEmpty();
    }

    @Test
    void readsTheFormatsOfNamedOutputs() {
        InferRequestBody request = read("{'parameters':{'binary_data_output':true},'inputs':[" + INPUT + "],'outputs':["
                + "{'name':'A','parameters':{'binary_data':true}},{'name':'B'}]}");

        assertThat(request.outputs().requested())
                .extracting(RequestedOutput::name)
                .containsExactly("A", "B");
        assertThat(request.outputs().format("A")).isEqualTo(RequestedOutputs.Format.BINARY);
        assertThat(request.outputs().format("B")).isEqualTo(RequestedOutputs.Format.JSON);
    }

    @Test
    void usesTheFirstOfSeveralMembersOfOneName() {
        assertThat(read("{'inputs':[],'inputs':[" + INPUT + "]}").inputs()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{} | Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
                "[] | Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
                "null | Unable to parse 'inputs': attempt to access non-existing object member 'inputs'",
                "{'inputs':{}} | Unable to parse 'inputs': attempt to access JSON non-array as array",
                "{'inputs':[],'id':1} | Unable to parse 'id': attempt to access JSON non-string as string",
                "{'inputs':[],'outputs':{}} | Unable to parse 'outputs': attempt to access JSON non-array as array",
                "{'inputs':[],'outputs':[{}]} | Unable to parse 'name': attempt to access non-existing object member 'name'",
                "{'inputs':[],'outputs':[{'name':1}]} | Unable to parse 'name': attempt to access JSON non-string as string",
                "{'inputs':[],'outputs':[{'name':'Y','parameters':{'binary_data':1}}]} | Unable to parse 'binary_data': attempt to access JSON non-boolean as boolean",
                "{'inputs':[],'outputs':[{'name':'Y','parameters':{'classification':-1}}]} | Unable to set 'classification': attempt to access JSON non-unsigned-integer as unsigned-integer",
                "{'inputs':[],'outputs':[{'name':'Y','parameters':{'shared_memory_region':1}}]} | Unable to parse 'shared_memory_region': attempt to access JSON non-string as string",
                "{'inputs':[],'parameters':'x'} | failed to get request params.: attempt to get members for non-object",
                "{'inputs':[],'parameters':{'binary_data_output':1}} | Unable to parse 'binary_data_output': attempt to access JSON non-boolean as boolean",
                "{'inputs':[],'parameters':{'sequence_id':-5}} | Unable to parse 'sequence_id': attempt to access JSON non-string as string",
                "{'inputs':[],'parameters':{'sequence_start':'true'}} | Unable to parse 'sequence_start': attempt to access JSON non-boolean as boolean",
                "{'inputs':[],'parameters':{'sequence_end':null}} | Unable to parse 'sequence_end': attempt to access JSON non-boolean as boolean",
                "{'inputs':[],'parameters':{'priority':'1'}} | Unable to parse 'priority': attempt to access JSON non-unsigned-integer as unsigned-integer",
                "{'inputs':[],'parameters':{'timeout':18446744073709551616}} | Unable to parse 'timeout': attempt to access JSON non-unsigned-integer as unsigned-integer",
                "{'inputs':[{'data':[1]}]} | Unable to parse 'name': attempt to access non-existing object member 'name'",
                "{'inputs':[{'name':null,'data':[1]}]} | Unable to parse 'name': attempt to access JSON non-string as string",
                "{'inputs':[{'name':'X','data':[1]}]} | Unable to parse 'datatype': attempt to access non-existing object member 'datatype'",
                "{'inputs':[{'name':'X','datatype':1,'data':[1]}]} | Unable to parse 'datatype': attempt to access JSON non-string as string",
                "{'inputs':[{'name':'X','datatype':'FP32','data':[1]}]} | Unable to parse 'shape': attempt to access non-existing object member 'shape'",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':4,'data':[1]}]} | Unable to parse 'shape': attempt to access JSON non-array as array",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[-1],'data':[1]}]} | Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[[1]],'data':[1]}]} | Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[1.0],'data':[1]}]} | Unable to parse 'shape': attempt to access JSON non-unsigned-integer as unsigned-integer",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[1],'data':1}]} | Unable to parse 'data': attempt to access JSON non-array as array",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[1],'data':null}]} | Unable to parse 'data': attempt to access JSON non-array as array",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[1],'data':['1']}]} | Unable to parse 'data': attempt to access JSON non-number as double",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[1],'data':[{}]}]} | Unable to parse 'data': attempt to access JSON non-number as double",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[2],'data':[1,null]}]} | Unable to parse 'data': attempt to access JSON non-number as double",
                "{'inputs':[{'name':'X','datatype':'INT32','shape':[1],'data':[1.5]}]} | Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
                "{'inputs':[{'name':'X','datatype':'INT64','shape':[1],'data':[9223372036854775808]}]} | Unable to parse 'data': attempt to access JSON non-signed-integer as signed-integer",
                "{'inputs':[{'name':'X','datatype':'UINT8','shape':[1],'data':[-1]}]} | Unable to parse 'data': attempt to access JSON non-unsigned-integer as unsigned-integer",
                "{'inputs':[{'name':'X','datatype':'UINT64','shape':[1],'data':[18446744073709551616]}]} | Unable to parse 'data': attempt to access JSON non-unsigned-integer as unsigned-integer",
                "{'inputs':[{'name':'X','datatype':'BOOL','shape':[1],'data':[1]}]} | Unable to parse 'data': attempt to access JSON non-boolean as boolean",
                "{'inputs':[{'name':'X','datatype':'BYTES','shape':[1],'data':[1]}]} | Unable to parse JSON bytes array: attempt to access JSON non-string as string",
            })
    void reportsWhatCannotBeParsed(String body, String problem) {
        assertThatThrownBy(() -> read(body))
                .isInstanceOfSatisfying(InferenceException.class, error -> {
                    assertThat(error.code()).isEqualTo(ErrorCode.INTERNAL);
                    assertThat(error.isClientError()).isTrue();
                })
                .hasMessageStartingWith(problem + "; ")
                .hasMessageContaining(": expected ")
                .hasMessageContaining(", got ");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{'inputs':[{'name':'X','datatype':'BOOL','shape':[4],'data':[true,[false],[true,1.5]]}]} | inputs[0].data[3]: expected true or false, got 1.5",
                "{'inputs':[{'name':'X','datatype':'INT8','shape':[2],'data':[1,'a\\nb']}]} | inputs[0].data[1]: expected a whole number from -128 to 127, got \"a\\nb\"",
                "{'inputs':[{'name':'X','datatype':'UINT64','shape':[3],'data':[1, 2,-3,4]}]} | inputs[0].data[2]: expected a whole number from 0 to 18446744073709551615, got -3",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[3],'data':[1,2,{'a':1}]}]} | inputs[0].data[2]: expected a number, got an object",
                "{'inputs':[{'name':'X','datatype':'BYTES','shape':[2],'data':['a',5]}]} | inputs[0].data[1]: expected a string, got 5",
                "{'inputs':[{'name':'A','datatype':'FP32','shape':[1],'data':[1]},{'name':'X','datatype':'FP32','shape':[1,-1],'data':[1]}]} | inputs[1].shape[1]: expected a whole number from 0 to 18446744073709551615, got -1",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[1],'parameters':{'binary_data_size':'16'}}]} | inputs[0].parameters.binary_data_size: expected a whole number from 0 to 18446744073709551615, got \"16\"",
                "{'inputs':[{'datatype':'FP32','shape':[1],'data':[1]}]} | inputs[0].name: expected a string, got nothing",
                "{'inputs':[],'outputs':[{'name':'Y'},{'name':'Z','parameters':{'binary_data':1}}]} | outputs[1].parameters.binary_data: expected true or false, got 1",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[1],'data':[1]}],'outputs':{}} | outputs: expected an array, got an object",
                "{'inputs':[],'parameters':{'priority':'1'}} | parameters.priority: expected a whole number from 0 to 18446744073709551615, got \"1\"",
                "{'inputs':[],'id':[1]} | id: expected a string, got an array",
                "{'inputs':[nan]} | expected an object, an array, a string, a number, true, false or null, got 'an]}'",
            })
    void reportsThePathTheExpectedAndTheActualValue(String body, String details) {
        assertThatThrownBy(() -> read(body)).message().endsWith("; " + details);
    }

    @Test
    void quotesOnlyTheBeginningOfAWrongValue() {
        String body = "{'inputs':[{'name':'X','datatype':'BOOL','shape':[1],'data':['" + "x".repeat(100_000) + "']}]}";

        assertThatThrownBy(() -> read(body))
                .message()
                .contains("got \"xxx")
                .endsWith("x…")
                .hasSizeLessThan(500);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{'inputs':[1]} | Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'. But no field is set",
                "{'inputs':[{'name':'X','data':[],'parameters':{'binary_data_size':1,'shared_memory_region':'r'}}]} | Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'. But set 'data' 'binary_data_size' 'shared_memory_region'",
                "{'inputs':[{'name':'X','parameters':{'binary_data_size':1,'shared_memory_region':'r'}}]} | Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters', 'shared_memory_region' in 'parameters'. But set 'binary_data_size' 'shared_memory_region'",
                "{'inputs':[{'name':'X','datatype':'FOO','shape':[1],'data':[1]}]} | invalid datatype for input X",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[1,9223372036854775808],'data':[1]}]} | invalid shape for input 'X': shape [1,-9223372036854775808] contains one or more invalid dimensions",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[4294967296,4294967296],'data':[1]}]} | invalid shape for input 'X': shape [4294967296,4294967296] causes total element count to exceed maximum size of 9223372036854775807",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[4611686018427387904],'data':[1]}]} | byte size overflow for input 'X': element count (4611686018427387904) * data type size (4) exceeds maximum allowed size (9223372036854775807)",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[251],'data':[1]}]} | JSON input 'X' has a byte_size (1004 bytes) that exceeds the maximum allowed value of 1000 bytes. Use --http-max-input-size to increase the limit.",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[1],'data':[1,2]}]} | Unable to parse 'data': Shape does not match true shape of 'data' field",
                "{'inputs':[{'name':'X','datatype':'FP32','shape':[200],'data':[1]}]} | Failed to parse 'data' field: shape does not match true shape",
                "{'inputs':[{'name':'X','datatype':'UINT8','shape':[2],'data':[1,256]}]} | input 'X': value 256 at index 1 is out of range for UINT8 (expected: 0 to 255)",
                "{'inputs':[{'name':'X','datatype':'UINT32','shape':[1],'data':[18446744073709551615]}]} | input 'X': value 18446744073709551615 at index 0 is out of range for UINT32 (expected: 0 to 4294967295)",
                "{'inputs':[{'name':'X','datatype':'INT8','shape':[1],'data':[-129]}]} | input 'X': value -129 at index 0 is out of range for INT8 (expected: -128 to 127)",
                "{'inputs':[{'name':'X','datatype':'INT32','shape':[1],'data':[2147483648]}]} | input 'X': value 2147483648 at index 0 is out of range for INT32 (expected: -2147483648 to 2147483647)",
                "{'inputs':[],'parameters':{'a':null}} | parameter 'a' has invalid type. It should be either 'int', 'bool', or 'string'.",
                "{'inputs':[],'parameters':{'a':{}}} | parameter 'a' has invalid type. It should be either 'int', 'bool', or 'string'.",
                "{'inputs':[],'parameters':{'a':[1]}} | parameter 'a' has invalid type. It should be either 'int', 'bool', or 'string'.",
                "{'inputs':[],'parameters':{'triton_x':1}} | parameter keys starting with 'triton_' are reserved for Triton usage and should not be specified.",
                "{'inputs':[],'outputs':[{'name':'Y'},{'name':'Y'}],'id':'i'} | [request id: i] output 'Y' already exists in request",
                "{'inputs':[],'outputs':[{'name':'Y','parameters':{'shared_memory_region':'r','classification':1}}]} | Output can't set both 'shared_memory_region' and 'classification'",
                "{'inputs':[],'outputs':[{'name':'Y','parameters':{'shared_memory_region':'r','binary_data':true}}]} | Output can't set both 'shared_memory_region' and 'binary_data'",
            })
    void reportsInvalidRequests(String body, String problem) {
        assertFails(body, ErrorCode.INVALID_ARGUMENT, problem);
    }

    @Test
    void refusesASecondInputOfOneName() {
        assertFails(
                "{'inputs':[" + INPUT + "," + INPUT + "]}",
                ErrorCode.INVALID_ARGUMENT,
                "[request id: <id_unknown>] input 'X' already exists in request");
    }

    @Test
    void refusesASecondOfManyInputs() {
        StringBuilder inputs = new StringBuilder();
        for (int i = 0; i < 50; i++) {
            inputs.append(INPUT.replace("'X'", "'X" + i + "'")).append(',');
        }

        assertFails(
                "{'inputs':[" + inputs + INPUT.replace("'X'", "'X30'") + "]}",
                ErrorCode.INVALID_ARGUMENT,
                "[request id: <id_unknown>] input 'X30' already exists in request");
    }

    @Test
    void refusesUnknownSharedMemory() {
        assertFails(
                "{'inputs':[{'name':'X','shape':[1],'datatype':'INT8','parameters':{'shared_memory_region':'r'}}]}",
                ErrorCode.NOT_FOUND,
                "Unable to find shared memory region: 'r'");
        assertFails(
                "{'inputs':[],'outputs':[{'name':'Y','parameters':{'shared_memory_region':'r'}}]}",
                ErrorCode.NOT_FOUND,
                "Unable to find shared memory region: 'r'");
    }

    @Test
    void readsTheFormsOfOutputs() {
        server.sharedMemory().register("r", "/r", 0, 16);

        RequestedOutputs outputs = read("{'inputs':[],'outputs':[{'name':'A','parameters':{'classification':3,"
                        + "'binary_data':true}},{'name':'B','parameters':{'shared_memory_region':'r',"
                        + "'shared_memory_offset':4,'shared_memory_byte_size':8,'binary_data':false}},"
                        + "{'name':'C','parameters':{'classification':0}},"
                        + "{'name':'D','parameters':{'classification':18446744073709551615}}]}")
                .outputs();

        assertThat(outputs.requested())
                .extracting(RequestedOutput::classes)
                .containsExactly(3L, 0L, 0L, Long.MAX_VALUE);
        assertThat(outputs.format("A")).isEqualTo(RequestedOutputs.Format.BINARY);
        assertThat(outputs.format("B")).isEqualTo(RequestedOutputs.Format.SHARED);
        assertThat(outputs.requested().get(1).target())
                .contains(OutputTarget.host(server.sharedMemory().memory("r").asSlice(4, 8)));
        assertThat(server.sharedMemory().leases()).isEqualTo(1);
    }

    @Test
    void releasesLeasesAfterAnError() {
        server.sharedMemory().register("r", "/r", 0, 16);

        assertFails(
                "{'inputs':[{'name':'X','shape':[1],'datatype':'INT8','parameters':{'shared_memory_region':'r',"
                        + "'shared_memory_byte_size':1}},{'name':'X'}]}",
                ErrorCode.INVALID_ARGUMENT,
                "Input must set only one of the following fields: 'data', 'binary_data_size' in 'parameters',"
                        + " 'shared_memory_region' in 'parameters'. But no field is set");
        assertThat(server.sharedMemory().leases()).isEqualTo(1);
        requestMemory.run();
        assertThat(server.sharedMemory().leases()).isZero();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "shared_memory_offset':-1 | Unable to parse 'shared_memory_offset': attempt to access JSON non-unsigned-integer as unsigned-integer",
                "shared_memory_byte_size':'1' | Unable to parse 'shared_memory_byte_size': attempt to access JSON non-unsigned-integer as unsigned-integer",
                "binary_data':1 | Unable to set 'binary_data': attempt to access JSON non-boolean as boolean",
            })
    void refusesInvalidPlacesInSharedMemory(String parameter, String error) {
        assertFails(
                "{'inputs':[],'outputs':[{'name':'Y','parameters':{'shared_memory_region':'r','" + parameter + "}}]}",
                ErrorCode.INTERNAL,
                error);
    }

    @Test
    void limitsTheNumberOfParts() {
        assertFails(
                "{'inputs':[" + "{},".repeat(10_000) + "{}]}",
                ErrorCode.INVALID_ARGUMENT,
                "inputs: more than 10000 (expected: at most 10000)");
        assertFails(
                "{'inputs':[],'outputs':["
                        + IntStream.rangeClosed(0, 10_000)
                                .mapToObj(i -> "{'name':'" + i + "'}")
                                .collect(Collectors.joining(","))
                        + "]}",
                ErrorCode.INVALID_ARGUMENT,
                "outputs: more than 10000 (expected: at most 10000)");
        assertFails(
                "{'inputs':[],'parameters':{"
                        + IntStream.rangeClosed(0, 10_000)
                                .mapToObj(i -> "'" + i + "':" + i)
                                .collect(Collectors.joining(","))
                        + "}}",
                ErrorCode.INVALID_ARGUMENT,
                "parameters: more than 10000 (expected: at most 10000)");
        assertFails(
                input("INT8", "[" + "1,".repeat(255) + "1]", "[1]"),
                ErrorCode.INVALID_ARGUMENT,
                "shape: more than 255 (expected: at most 255); input 'X'");
    }

    @Test
    void limitsStringSequenceIds() {
        assertThat(read("{'parameters':{'sequence_id':'" + "s".repeat(128) + "'},'inputs':[]}")
                        .options()
                        .sequence())
                .isPresent();
        assertFails(
                "{'parameters':{'sequence_id':'" + "s".repeat(129) + "'},'inputs':[]}",
                ErrorCode.UNSUPPORTED,
                "string correlation ID cannot be longer than 128 characters");
    }

    @ParameterizedTest
    @CsvSource({
        "20, 16, 4",
        "16, 0, 16",
        "9223372036854775807, 16, 9223372036854775791",
        "18446744073709551615, 16, 18446744073709551599"
    })
    void reportsMissingBytes(String size, int payload, String missing) {
        assertThatThrownBy(() -> read("{'inputs':[" + BINARY.formatted(size) + "]}", new byte[payload]))
                .hasMessage("unexpected size for input 'X', expecting %s additional bytes for model 'm'", missing);
    }

    @Test
    void reportsExcessBytes() {
        assertThatThrownBy(() -> read("{'inputs':[" + BINARY.formatted("16") + "]}", new byte[17]))
                .hasMessage("unexpected additional input data for model 'm'");
        assertThatThrownBy(() -> read("{'inputs':[" + INPUT + "]}", new byte[1]))
                .hasMessage("unexpected additional input data for model 'm'");
    }

    @ParameterizedTest
    @ValueSource(strings = {"-1", "'16'", "16.0", "null", "true", "18446744073709551616"})
    void refusesInvalidSizes(String size) {
        assertFails(
                "{'inputs':[" + BINARY.formatted(size) + "]}",
                ErrorCode.INTERNAL,
                "Unable to parse 'binary_data_size': attempt to access JSON non-unsigned-integer as unsigned-integer");
    }

    @Test
    void limitsTheDepthOfDataOnly() {
        String deep = "[".repeat(99) + "1" + "]".repeat(99);
        assertThat(read(input("INT8", "[1]", deep)).inputs()).hasSize(1);

        assertFails(
                input("INT8", "[1]", "[" + deep + "]"),
                ErrorCode.INVALID_ARGUMENT,
                "Unable to parse 'data': JSON nesting depth exceeds maximum allowed limit (100)");
        assertThat(read("{'x':" + "[".repeat(5000) + "]".repeat(5000) + ",'inputs':[]}")
                        .inputs())
                .isEmpty();
    }

    @Test
    void findsSyntaxErrorsBeforeAnythingElse() {
        assertFails(
                "{'id':1,'inputs':[" + INPUT + "],}",
                ErrorCode.INTERNAL,
                "failed to parse the request JSON buffer: Missing a name for object member. at 81");
    }

    @Test
    void findsSyntaxErrorsInNumbersBeforeAnythingElse() {
        assertFails(
                "{'id':1,'inputs':[" + INPUT.replace("2,3", "2x,3") + "]}",
                ErrorCode.INTERNAL,
                "failed to parse the request JSON buffer: Missing a comma or ']' after an array element.");
    }

    @Test
    void refusesTextBehindTheRequest() {
        assertFails(
                "{'inputs':[]} x",
                ErrorCode.INTERNAL,
                "failed to parse the request JSON buffer: The document root must not be followed by other values.");
    }

    @Test
    void acceptsAByteOrderMarkAndBlanks() {
        assertThat(read("\ufeff \n{'inputs':[]} ").inputs()).isEmpty();
    }

    @Test
    void ignoresUnknownMembersOfAnyInput() {
        String second = INPUT.replace("'X'", "'Y','extra':1");

        assertThat(read("{'inputs':[" + INPUT.replace("'X'", "'X','extra':1") + "," + second + "]}")
                        .inputs())
                .extracting(InputTensor::name)
                .containsExactly("X", "Y");
    }

    @Test
    void reportsIdAndUseOfTheBody() {
        String binary = "{'name':'B','shape':[1],'datatype':'INT8','parameters':{'binary_data_size':1}}";

        InferRequestReader none = reader("{'id':'a','inputs':[]}", 0);
        InferRequestReader json = reader("{'inputs':[" + INPUT + "]}", 0);
        InferRequestReader both = reader("{'inputs':[" + INPUT + "," + binary + "]}", 1);
        InferRequestReader onlyBody = reader("{'inputs':[" + binary + "]}", 1);

        assertThat(none.id()).isEqualTo("a");
        assertThat(List.of(none, json, both, onlyBody))
                .extracting(InferRequestReader::usesBody)
                .containsExactly(false, false, true, true);
        assertThat(List.of(none, json, both, onlyBody))
                .extracting(InferRequestReader::usesOnlyBody)
                .containsExactly(false, false, false, true);
    }

    @Test
    void reportsIgnoredData() {
        assertThat(reader(input("FP32", "[0,4]", "[1]"), 0).ignoredData()).isTrue();
        assertThat(reader(input("FP32", "[0,4]", "[]"), 0).ignoredData()).isFalse();
    }

    @Test
    void allocatesNoMoreThanTheTextCanFill() {
        InferRequestReader reader = new InferRequestReader(
                "m",
                MemorySegment.ofArray(
                        json(input("FP64", "[100000000]", "[1,2]")).getBytes(StandardCharsets.UTF_8)),
                json(input("FP64", "[100000000]", "[1,2]")).length(),
                requestMemory,
                1L << 40);

        assertThatThrownBy(reader::read).hasMessageStartingWith("Failed to parse 'data' field");
        assertThat(memory.bytesInUse()).isLessThan(1000);
    }

    private void assertFails(String body, ErrorCode code, String message) {
        assertThatThrownBy(() -> read(body))
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(code))
                .hasMessageStartingWith(message);
    }

    private InferRequestBody read(String json) {
        return read(json, new byte[0]);
    }

    private InferRequestBody read(String json, byte[] payload) {
        byte[] header = json(json).getBytes(StandardCharsets.UTF_8);
        MemorySegment body = MemorySegment.ofArray(new byte[header.length + payload.length]);
        body.copyFrom(MemorySegment.ofArray(header));
        body.asSlice(header.length).copyFrom(MemorySegment.ofArray(payload));
        return reader(body, header.length).read();
    }

    /** Returns a reader that has read a request with some bytes behind the JSON. */
    private InferRequestReader reader(String json, int payload) {
        byte[] header = json(json).getBytes(StandardCharsets.UTF_8);
        InferRequestReader reader =
                reader(MemorySegment.ofArray(Arrays.copyOf(header, header.length + payload)), header.length);
        reader.read();
        return reader;
    }

    private InferRequestReader reader(MemorySegment body, long jsonLength) {
        return new InferRequestReader("m", body, jsonLength, requestMemory, LIMIT);
    }

    private static String input(String datatype, String shape, String data) {
        return "{'inputs':[{'name':'X','shape':" + shape + ",'datatype':'" + datatype + "','data':" + data + "}]}";
    }

    private static String json(String text) {
        return text.replace('\'', '"');
    }

    private static String hex(MemorySegment data) {
        StringBuilder text = new StringBuilder();
        for (byte next : data.toArray(ValueLayout.JAVA_BYTE)) {
            text.append(text.isEmpty() ? "" : " ").append(String.format(Locale.ROOT, "%02x", next));
        }
        return text.toString();
    }
}
