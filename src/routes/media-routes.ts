// The rows of the route table for uploaded files (spec 4.7): for clients, with their aliases below /v1/files, and for
// administrators.

import { ACTIVE, NAMED, type Tenancy } from '../control-plane/identity/tenancy.ts';
import { getMedia, getMediaMetadata, getPublicMedia } from '../control-plane/media/get-media.ts';
import * as manage from '../control-plane/media/manage-media.ts';
import type { Media } from '../control-plane/media/media-parts.ts';
import { uploadMedia } from '../control-plane/media/upload-media.ts';
import type { DescribedRoute, RouteAccess } from '../control-plane/openapi/described-route.ts';
import {
  describeMedia,
  describeMediaMetadata,
  describeUpload,
  GET_PUBLIC_MEDIA,
} from '../control-plane/openapi/media-descriptions.ts';
import type { Authorize, OperationDescription } from '../control-plane/operation.ts';
import type { Exchange } from '../http/exchange.ts';
import { authorizeBy } from './authorize.ts';
import {
  ACTIVE_ORGANIZATION_PATH,
  type ControlPlaneRow,
  ORGANIZATION_ADMIN,
  ORGANIZATION_PATH,
  PLATFORM_ADMIN,
  row,
} from './control-plane-row.ts';
import type { RouteParts } from './route-parts.ts';

type Serve = (media: Media | null, exchange: Exchange, authorize: Authorize) => Promise<void>;

const OF_MEDIA = { plane: 'control', permission: 'inference', scope: 'organization', envelope: 'platform' } as const;

export function mediaRoutes(parts: RouteParts): readonly DescribedRoute[] {
  const route = (
    method: 'GET' | 'POST',
    path: string,
    description: OperationDescription,
    serve: Serve,
  ): DescribedRoute => {
    const access = { method, path, ...OF_MEDIA };
    return {
      ...access,
      description,
      handle: (exchange) => serve(parts.media, exchange, authorizeBy(parts.authenticator, access, exchange)),
    };
  };
  const below = (path: string, uploadPath: string, isAlias: boolean): DescribedRoute[] => [
    route('POST', uploadPath, describeUpload(isAlias), uploadMedia),
    { ...route('GET', `${path}/:id`, describeMedia(isAlias), getMedia), answersHead: true },
    route('GET', `${path}/:id/metadata`, describeMediaMetadata(isAlias), getMediaMetadata),
  ];
  const everybody: DescribedRoute = {
    method: 'GET',
    path: '/v1/media/:id/public/:signature',
    plane: 'process',
    permission: null,
    scope: 'none',
    envelope: 'platform',
    answersHead: true,
    description: GET_PUBLIC_MEDIA,
    handle: (exchange) => getPublicMedia(parts.media, exchange),
  };
  return [...below('/v1/media', '/v1/media/upload', false), ...below('/v1/files', '/v1/files', true), everybody];
}

export function mediaRows(parts: RouteParts): ControlPlaneRow[] {
  return [
    ...rowsOf(parts, `${ACTIVE_ORGANIZATION_PATH}/media`, ORGANIZATION_ADMIN, ACTIVE),
    ...rowsOf(parts, `${ORGANIZATION_PATH}/media`, PLATFORM_ADMIN, NAMED),
  ];
}

function rowsOf(
  { mediaRows: rows, identity }: RouteParts,
  path: string,
  admin: RouteAccess,
  tenancy: Tenancy,
): ControlPlaneRow[] {
  return [
    row('GET', path, admin, manage.listMedia(rows, identity, tenancy)),
    row('GET', `${path}/usage`, admin, manage.getMediaUsage(rows, tenancy)),
    row('DELETE', `${path}/:mediaId`, admin, manage.removeMedia(rows, tenancy)),
  ];
}
