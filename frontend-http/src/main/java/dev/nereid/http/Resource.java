package dev.nereid.http;

import dev.nereid.api.ApiGroup;

/** What can be asked over HTTP: who may ask, by which method, and how errors that come before the answer are typed. */
enum Resource {
    SERVER(ApiGroup.METADATA, Resource.GET, Resource.JSON),
    LIVE(ApiGroup.HEALTH, Resource.GET, Resource.TEXT),
    READY(ApiGroup.HEALTH, Resource.GET, Resource.TEXT),
    MODEL(ApiGroup.METADATA, Resource.GET, Resource.JSON),
    MODEL_READY(ApiGroup.HEALTH, Resource.GET, Resource.TEXT),
    MODEL_CONFIG(ApiGroup.MODEL_CONFIG, Resource.GET, Resource.JSON),
    STATISTICS(ApiGroup.STATISTICS, Resource.GET, Resource.JSON),
    INFER(ApiGroup.INFERENCE, Resource.POST, Resource.TEXT),
    GENERATE(ApiGroup.INFERENCE, Resource.POST, Resource.JSON),
    REPOSITORY(ApiGroup.MODEL_REPOSITORY, Resource.POST, Resource.JSON),
    REGION_STATUS(ApiGroup.SHARED_MEMORY, Resource.GET, Resource.JSON),
    REGION_CHANGE(ApiGroup.SHARED_MEMORY, Resource.POST, Resource.JSON);

    private static final String GET = "GET";
    private static final String POST = "POST";
    private static final String JSON = "application/json";
    private static final String TEXT = "text/plain";

    private final ApiGroup group;
    private final String method;
    private final String errorType;

    Resource(ApiGroup group, String method, String errorType) {
        this.group = group;
        this.method = method;
        this.errorType = errorType;
    }

    /** Returns the part of the protocol that access may be restricted to. */
    ApiGroup group() {
        return group;
    }

    /** Returns the only method it can be asked by. */
    String method() {
        return method;
    }

    /** Returns the content type of the error that tells of another method. */
    String errorType() {
        return errorType;
    }
}
