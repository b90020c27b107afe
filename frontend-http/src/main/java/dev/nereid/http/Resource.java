package dev.nereid.http;

import dev.nereid.api.frontend.ApiGroup;
import dev.nereid.http.body.ContentTypes;

/** HTTP resources: access group, method and content type of early errors. */
enum Resource {
    SERVER(ApiGroup.METADATA, Resource.GET, ContentTypes.JSON),
    LIVE(ApiGroup.HEALTH, Resource.GET, ContentTypes.TEXT),
    READY(ApiGroup.HEALTH, Resource.GET, ContentTypes.TEXT),
    MODEL(ApiGroup.METADATA, Resource.GET, ContentTypes.JSON),
    MODEL_READY(ApiGroup.HEALTH, Resource.GET, ContentTypes.TEXT),
    MODEL_CONFIG(ApiGroup.MODEL_CONFIG, Resource.GET, ContentTypes.JSON),
    STATISTICS(ApiGroup.STATISTICS, Resource.GET, ContentTypes.JSON),
    INFER(ApiGroup.INFERENCE, Resource.POST, ContentTypes.TEXT),
    GENERATE(ApiGroup.INFERENCE, Resource.POST, ContentTypes.JSON),
    GENERATE_STREAM(ApiGroup.INFERENCE, Resource.POST, ContentTypes.JSON),
    REPOSITORY(ApiGroup.MODEL_REPOSITORY, Resource.POST, ContentTypes.JSON),
    REGION_STATUS(ApiGroup.SHARED_MEMORY, Resource.GET, ContentTypes.JSON),
    REGION_CHANGE(ApiGroup.SHARED_MEMORY, Resource.POST, ContentTypes.JSON);

    private static final String GET = "GET";
    private static final String POST = "POST";

    private final ApiGroup group;
    private final String method;

    @SuppressWarnings("ImmutableEnumChecker") // one of the constants of ContentTypes
    private final CharSequence errorType;

    Resource(ApiGroup group, String method, CharSequence errorType) {
        this.group = group;
        this.method = method;
        this.errorType = errorType;
    }

    /** Returns the API group by which access is restricted. */
    ApiGroup group() {
        return group;
    }

    /** Returns the only method that is allowed. */
    String method() {
        return method;
    }

    /** Returns the content type of the error for another method. */
    CharSequence errorType() {
        return errorType;
    }
}
